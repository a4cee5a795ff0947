"""Compares receipts and the log of uncharged calls with the ledger's calls, row by row, from the tables alone.

The owner of a ledger stores a follower's call as `service:call_id`; the follower has the receipts and no calls of its
own, so its receipts are compared with the calls in the owner's database.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.receipts import merkle
from toolserver.money.receipts.log import BucketTotal, LogMark, add_up, read_hour, show_hour, sum_by_day
from toolserver.money.receipts.sql_store import first_hour, last_checkpoint, last_hour, list_booked, log_size
from toolserver.sql.connection import SqlConnection, json_number, json_text

DAY_MS = 86_400_000
KEPT_MS = 89 * DAY_MS  # receipts that are older may have been deleted
_RECEIPTS = """
  SELECT c.id, c.call_id, c.charged, r.state, r.credits FROM (
    SELECT id, at, {call_id} AS call_id,
      {charged} AS charged,
      {balance} AS balance FROM receipt) c
  LEFT JOIN reservation r ON r.call_id = c.call_id
  WHERE CASE WHEN r.call_id IS NULL THEN c.charged <> 0 AND c.balance IS NOT NULL AND c.at >= ?
    WHEN r.state = 'posted' THEN c.charged NOT IN (0, r.credits)
    WHEN r.state = 'open' THEN TRUE ELSE FALSE END ORDER BY c.id"""
_WITHOUT = """
  SELECT r.call_id, r.credits FROM reservation r
  WHERE r.state = 'posted' AND r.service = '' AND r.settled_at >= ? AND NOT EXISTS (
    SELECT 1 FROM receipt c WHERE c.id = 'rcpt_' || CASE WHEN r.call_id LIKE 'call\\_%' ESCAPE '\\'
      THEN substr(r.call_id, 6) ELSE r.call_id END
    AND {charged} = r.credits)
  ORDER BY r.call_id"""
_UNCHARGED = """
  SELECT id, core FROM receipt WHERE {reason} IS NOT NULL ORDER BY id"""
_OLD_SUMS = """
  SELECT day, {reason}, {endpoint},
    count(*), sum({credits}) FROM no_charge WHERE hour IS NULL GROUP BY 1, 2, 3"""
_REMOVED_SUMS = """
  SELECT day, {reason}, {endpoint},
    sum({calls}), sum({credits}) FROM no_charge WHERE hour < ? GROUP BY 1, 2, 3"""
_APPENDED = "SELECT DISTINCT hour FROM uncharged_call WHERE hour >= ? AND hour <= ? ORDER BY hour"
_BOOKED = "SELECT 1 FROM uncharged_call WHERE hour=? AND key=? AND receipt=?"


def _spell(db: SqlConnection, sql: str, column: str = "core") -> str:
    """Return a query in which members of the JSON in `column` are written in the syntax of the database's engine."""
    reason = "no_charge_reason" if column == "core" else "reason"
    texts = {"call_id": "call_id", "endpoint": "endpoint", "reason": reason}
    numbers = {"charged": "credits_charged", "balance": "balance_after", "credits": "credits", "calls": "calls"}
    spelled = {name: json_text(db, column, member) for name, member in texts.items()}
    return sql.format(**spelled, **{name: json_number(db, column, member) for name, member in numbers.items()})


def count_receipts(db: SqlConnection) -> int:
    """Return the number of stored receipts."""
    return int(db.execute("SELECT count(*) FROM receipt").fetchone()[0])


def count_logged(db: SqlConnection) -> int:
    """Return the number of booked uncharged calls plus the number of leaves in the log."""
    booked = db.execute("SELECT count(*) FROM uncharged_call").fetchone()[0]
    return int(booked) + log_size(db)


def find_receipt_differences(db: SqlConnection, now: int) -> Iterator[str]:
    """Yield receipts that contradict the ledger, and charged calls of the 89 days before `now` (epoch ms) without one.

    A charge that was refunded after its receipt was signed is no difference: the statement and the log show it. A call
    that was paid by signature (x402) has a receipt, which names no balance, and nothing in the ledger. Rows of archived
    calls may have been removed before their receipts.
    """
    removed = read_horizon(db)
    bounds = (removed and removed + DAY_MS,)
    for id, call_id, charged, state, credits in db.execute(_spell(db, _RECEIPTS), bounds):
        said = "has no such call" if state is None else f"has it as {state}, for {credits} credits"
        yield f"{id} says {charged} credits were charged for {call_id}; the ledger {said}"
    for call_id, credits in db.execute(_spell(db, _WITHOUT), (now - KEPT_MS,)):
        yield f"{call_id} was charged {credits} credits and has no receipt that says so"


def find_log_differences(db: SqlConnection, mark: LogMark | None) -> Iterator[str]:
    """Yield the differences between booked calls, leaves, tree, sums, signed checkpoint and the mark outside the
    database.
    """
    size = log_size(db)
    nodes: dict[tuple[int, int], bytes] = {}
    stored = {(level, index): bytes(value) for level, index, value in db.execute("SELECT * FROM log_node")}
    for seq, entry in db.execute("SELECT seq, entry FROM no_charge ORDER BY seq"):
        for level, index, value in merkle.grow(lambda *place: nodes[place], seq, bytes(entry)):
            nodes[level, index] = value
    wrong = [place for place in nodes.keys() | stored.keys() if nodes.get(place) != stored.get(place)]
    yield from (f"node {place} of the log is not what its leaves say" for place in islice(sorted(wrong), 5))
    last = last_checkpoint(db)
    for name, state in (("signed checkpoint", last), ("mark outside the database", mark)):
        if state is not None and state.size > size:
            yield f"the log has {size} leaves, the {name} {state.size}"
        elif state is not None and merkle.root(lambda *place: nodes[place], state.size) != state.root:
            yield f"the first {state.size} leaves of the log are not those of the {name}"
    yield from _find_bucket_differences(db)


def _find_bucket_differences(db: SqlConnection) -> Iterator[str]:
    """Yield the leaves of closed hours and the sums by day that differ from what was booked."""
    sums = {
        (day, reason, endpoint): (n, credits)
        for day, reason, endpoint, n, credits in db.execute(_spell(db, _OLD_SUMS, "entry"))
    }
    first = first_hour(db)
    for day, reason, endpoint, calls, credits in db.execute(_spell(db, _REMOVED_SUMS, "entry"), (first,)):
        before = sums.get((day, reason, endpoint), (0, 0))
        sums[day, reason, endpoint] = (before[0] + int(calls), before[1] + int(credits))
    leaves = "SELECT hour, key, seq, entry FROM no_charge WHERE hour >= ?"
    leaves_by_bucket = {
        (hour, bytes(key)): (seq, bytes(entry)) for hour, key, seq, entry in db.execute(leaves, (first,))
    }
    for (hour,) in db.execute(_APPENDED, (first, last_hour(db))).fetchall():
        totals = add_up(list_booked(db, hour))
        for row in sum_by_day(totals):
            calls, credits = sums.get(row[:3], (0, 0))
            sums[row[:3]] = (calls + row.calls, credits + row.credits)
        for total in totals:
            yield from _compare_leaf(total, leaves_by_bucket.pop((total.hour, total.key), None))
    yield from (f"leaf {seq} says more than what was booked" for seq, _ in leaves_by_bucket.values())
    rows = db.execute("SELECT day, reason, endpoint, calls, credits FROM no_charge_day")
    said = {(day, reason, endpoint): (calls, credits) for day, reason, endpoint, calls, credits in rows}
    for key in sorted(said.keys() | sums.keys()):
        if said.get(key) != sums.get(key):
            yield f"{' '.join(key)}: the sum says (calls, credits) {said.get(key)}, the leaves {sums.get(key)}"


def _compare_leaf(total: BucketTotal, leaf: tuple[int, bytes] | None) -> Iterator[str]:
    where = f"{total.reason} {total.endpoint} in the hour {show_hour(total.hour)}"
    if leaf is None:
        yield f"{total.calls} calls, {where}, were booked and have no leaf in the log"
    elif total.entry(leaf[0]) != leaf[1]:
        yield f"leaf {leaf[0]} is not what was booked: {total.calls} calls, {where}"


def find_unlogged(db: SqlConnection) -> Iterator[str]:
    """Yield receipts of uncharged calls that are not at the place that they name: in the log, or among booked calls."""
    for id, core in db.execute(_spell(db, _UNCHARGED)):
        place = msgspec.json.decode(bytes(core)).get("log") or {}
        digest = hashlib.sha256(bytes(core))
        if "index" in place:
            row = db.execute("SELECT entry FROM no_charge WHERE seq=? AND hour IS NULL", (place["index"],)).fetchone()
            if row is None or msgspec.json.decode(bytes(row[0]))["receipt_sha256"] != digest.hexdigest():
                yield f"{id} names leaf {place['index']} of the log, which is missing or belongs to another receipt"
        elif "key" in place:
            hour = read_hour(place["hour"])
            key = (hour, bytes.fromhex(place["key"]), digest.digest())
            if hour is not None and hour < first_hour(db):
                continue  # what was booked then is in an archive
            if db.execute(_BOOKED, key).fetchone() is None:
                yield f"{id} names the hour {place['hour']} of the log, where it was not booked"


_FOLLOWERS_RECEIPTS = """
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
    for id, at, call_id, charged in db.execute(_FOLLOWERS_RECEIPTS):
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
