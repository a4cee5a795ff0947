"""Compares the receipts of a service that follows a ledger with the calls in the database of that ledger's owner.

The owner stores a follower's call as `service:call_id`; the follower has the receipts and no calls of its own.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from toolserver.money.receipts.sql_audit import DAY_MS, KEPT_MS
from toolserver.sql.connection import SqlConnection

_RECEIPTS = """
  SELECT id, at, json_extract(CAST(core AS TEXT), '$.call_id'), json_extract(CAST(core AS TEXT), '$.credits_charged')
  FROM receipt WHERE json_extract(CAST(core AS TEXT), '$.balance_after') IS NOT NULL
    AND json_extract(CAST(core AS TEXT), '$.credits_charged') <> 0 ORDER BY id"""


class OwnersCall(NamedTuple):
    """A call of the follower as the owner's ledger has it."""

    state: str
    credits: int
    settled_at: int | None


def list_calls_of(service: str, db: SqlConnection) -> dict[str, OwnersCall]:
    """Return the calls of a follower in its owner's file, by the call_id that the follower uses."""
    start = f"{service}:"
    sql = "SELECT call_id, state, credits, settled_at FROM reservation WHERE substr(call_id, 1, ?) = ?"
    rows = db.execute(sql, (len(start), start))
    return {call_id.removeprefix(start): OwnersCall(*rest) for call_id, *rest in rows}


def find_follower_differences(
    calls: Mapping[str, OwnersCall], now: int, db: SqlConnection, horizon: int = 0
) -> Iterator[str]:
    """Yield receipts that contradict the owner's ledger, and charges without one in the 89 days before `now` (ms).

    A charge that was refunded after its receipt was signed is no difference, and neither is one that is being refunded.
    Before `horizon` (epoch ms) the owner may have removed calls.
    """
    said: dict[str, int] = {}
    for id, at, call_id, charged in db.execute(_RECEIPTS):
        said[call_id] = charged
        call = calls.get(call_id)
        if call is None and horizon and at < horizon + DAY_MS:
            continue
        if call is None or call.state == "open" or (call.state == "posted" and call.credits != charged):
            ledger = "has no such call" if call is None else f"has it as {call.state}, for {call.credits} credits"
            yield f"{id} says {charged} credits were charged for {call_id}; the ledger {ledger}"
    leaving = {call_id for (call_id,) in db.execute("SELECT call_id FROM journal")}
    for call_id, call in sorted(calls.items()):
        if call.state == "posted" and (call.settled_at or 0) >= now - KEPT_MS and call_id not in said.keys() | leaving:
            yield f"{call_id} was charged {call.credits} credits and has no receipt that says so"
