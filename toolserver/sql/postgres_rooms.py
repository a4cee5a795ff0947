"""Implement rooms, in which only one instance at a time makes changes. A group has one transaction per room.

Ledger operations need no room: they lock the accounts that they change, in the order of their ids. Stores that read
before they write, and that have many small rows, lock all rows by a name instead. So the rows that they read stay the
same until they have committed, as in a file with one writer. A room is entered before any row is locked, and ledger
operations enter none, so that an operation in a room never waits for one that waits for the room.
"""

from collections.abc import Callable
from typing import Any

from toolserver.sql.connection import SqlConnection, hold_alone
from toolserver.sql.transactions import PendingOperation


def serve_rooms(group: list[PendingOperation], serve: Callable[[list[PendingOperation]], list[Any]]) -> list[Any]:
    """Return the outcomes of a group. `serve` gets the operations of one room at a time, in order."""
    rooms: dict[str, list[int]] = {}
    for place, asked in enumerate(group):
        rooms.setdefault(asked.room, []).append(place)
    outcomes: list[Any] = [None] * len(group)
    for room in sorted(rooms):  # operations without a room come first, because callers wait for the ledger
        for place, outcome in zip(rooms[room], serve([group[at] for at in rooms[room]]), strict=True):
            outcomes[place] = outcome
    return outcomes


def enter_room(db: SqlConnection, group: list[PendingOperation]) -> None:
    """Lock the room of these operations exclusively until the transaction ends."""
    if group[0].room:
        hold_alone(db, f"room {group[0].room}")
