"""Receipts and the log of uncharged calls compared with the ledger's calls, row by row, from the tables alone."""

import sqlite3
from collections.abc import Iterator
from itertools import islice

import msgspec

from toolserver.receipts import merkle
from toolserver.receipts.log_state import LogMark
from toolserver.receipts.sqlite_log import last_checkpoint, log_size

KEPT_MS = 89 * 86_400_000  # receipts that are older may have been deleted
_RECEIPTS = """
  SELECT c.id, c.call_id, c.charged, r.state, r.credits FROM (
    SELECT id, json_extract(CAST(core AS TEXT), '$.call_id') AS call_id,
      json_extract(CAST(core AS TEXT), '$.credits_charged') AS charged,
      json_extract(CAST(core AS TEXT), '$.balance_after') AS balance FROM receipt) c
  LEFT JOIN reservation r ON r.call_id = c.call_id
  WHERE CASE WHEN r.call_id IS NULL THEN c.charged <> 0 AND c.balance IS NOT NULL
    WHEN r.state = 'posted' THEN c.charged NOT IN (0, r.credits)
    WHEN r.state = 'open' THEN 1 ELSE 0 END ORDER BY c.id"""
_WITHOUT = """
  SELECT r.call_id, r.credits FROM reservation r
  WHERE r.state = 'posted' AND r.service = '' AND r.settled_at >= ? AND NOT EXISTS (
    SELECT 1 FROM receipt c WHERE c.id = 'rcpt_' || CASE WHEN r.call_id LIKE 'call\\_%' ESCAPE '\\'
      THEN substr(r.call_id, 6) ELSE r.call_id END
    AND json_extract(CAST(c.core AS TEXT), '$.credits_charged') = r.credits)
  ORDER BY r.call_id"""
_UNCHARGED = """
  SELECT id, core FROM receipt WHERE json_extract(CAST(core AS TEXT), '$.no_charge_reason') IS NOT NULL ORDER BY id"""
_DAYS = """
  SELECT s.day, s.reason, s.endpoint, s.calls, coalesce(e.calls, 0) FROM no_charge_day s LEFT JOIN (
    SELECT day, json_extract(CAST(entry AS TEXT), '$.reason') AS reason,
      json_extract(CAST(entry AS TEXT), '$.endpoint') AS endpoint, count(*) AS calls,
      sum(json_extract(CAST(entry AS TEXT), '$.credits')) AS credits FROM no_charge GROUP BY 1, 2, 3) e
  ON (e.day, e.reason, e.endpoint) = (s.day, s.reason, s.endpoint)
  WHERE (s.calls, s.credits) IS NOT (e.calls, e.credits)"""


def count_receipts(db: sqlite3.Connection) -> int:
    """How many receipts are stored."""
    return int(db.execute("SELECT count(*) FROM receipt").fetchone()[0])


def find_receipt_differences(db: sqlite3.Connection, now: int) -> Iterator[str]:
    """Receipts that say something else than the ledger did, and charged calls of the last 89 days that have none.

    A charge that was given back after its receipt was signed is no difference: the statement and the log say so. A call
    that was paid by signature (x402) has a receipt and nothing in the ledger; it names no balance.
    """
    for id, call_id, charged, state, credits in db.execute(_RECEIPTS):
        said = "has no such call" if state is None else f"has it {state}, of {credits}"
        yield f"{id} says {charged} credits were charged for {call_id}; the ledger {said}"
    for call_id, credits in db.execute(_WITHOUT, (now - KEPT_MS,)):
        yield f"{call_id} was charged {credits} credits and has no receipt that says so"


def find_log_differences(db: sqlite3.Connection, mark: LogMark | None) -> Iterator[str]:
    """Where leaves, tree, sums, signed checkpoint and the mark outside the database do not agree."""
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
    for day, reason, endpoint, said, found in db.execute(_DAYS):
        yield f"{day} {reason} {endpoint}: the sum says {said} calls, the leaves {found}"


def find_unlogged(db: sqlite3.Connection) -> Iterator[str]:
    """Receipts of uncharged calls whose place in the log holds no leaf of that number."""
    for id, core in db.execute(_UNCHARGED):
        place = msgspec.json.decode(bytes(core)).get("log") or {}
        index = place.get("index")
        if index is not None and not db.execute("SELECT 1 FROM no_charge WHERE seq=?", (index,)).fetchone():
            yield f"{id} names leaf {index} of the log, which is not there"
