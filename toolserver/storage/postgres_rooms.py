"""Rooms: what one instance at a time changes. A group has one transaction for each of its rooms.

Operations of the ledger need none: they lock the accounts that they change, in the order of their ids. Stores that read
before they write, and whose rows are many and small, lock all of them by a name instead, so that what they read is what
stays until they have committed, as in a file with one writer. A room is entered before any row is locked, and the
ledger enters none: so nobody who is in a room waits for somebody who waits for it.
"""

from collections.abc import Callable
from typing import Any

from toolserver.storage.connection import SqlConnection, hold_alone
from toolserver.storage.transactions import PendingOperation


def serve_rooms(group: list[PendingOperation], serve: Callable[[list[PendingOperation]], list[Any]]) -> list[Any]:
    """The outcomes of a group, of which `serve` gets the operations of one room at a time, in their order."""
    rooms: dict[str, list[int]] = {}
    for place, asked in enumerate(group):
        rooms.setdefault(asked.room, []).append(place)
    outcomes: list[Any] = [None] * len(group)
    for room in sorted(rooms):  # what has no room is first: callers wait for the ledger
        for place, outcome in zip(rooms[room], serve([group[at] for at in rooms[room]]), strict=True):
            outcomes[place] = outcome
    return outcomes


def enter_room(db: SqlConnection, group: list[PendingOperation]) -> None:
    """Be the only one in the room of these operations until the transaction ends."""
    if group[0].room:
        hold_alone(db, f"room {group[0].room}")
