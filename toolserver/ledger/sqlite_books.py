"""The books of a span of time, summed from the ledger's transfers. Read beside a running service, without its threads.

Every figure is summed here from `transfer` alone; what accounts, reservations and purchases say is compared elsewhere.
"""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

_SOURCE = """CASE WHEN cause IS NULL OR cause LIKE 'x402:replaces:%' THEN ''
  ELSE substr(cause, 1, instr(cause, ':') - 1) END"""
_PERIOD = "(at >= :since) + (at >= :until)"  # 0 before the span, 1 within, 2 after it
_INCOME = f"""SELECT {_PERIOD}, {_SOURCE}, sum(amount) FROM transfer
  WHERE cause IS NOT NULL AND debit = 1 GROUP BY 1, 2"""
_OUTGO = f"SELECT {_PERIOD}, {_SOURCE}, sum(amount) FROM transfer WHERE debit > 3 AND credit = 1 GROUP BY 1, 2"
_CALLS = f"""
  WITH moved AS (
    SELECT {_PERIOD} AS period, kind = 'void' AS void, iif(kind = 'reverse', amount, 0) AS back,
      iif(credit = 2 AND kind IN ('posted', 'post'), amount, 0) AS used FROM transfer)
  SELECT coalesce(sum((used - back) * (period = 0)), 0), coalesce(sum((used - back) * (period = 2)), 0),
    coalesce(sum(used * (period = 1)), 0), coalesce(sum(back * (period = 1)), 0),
    coalesce(sum((used > 0) * (period = 1)), 0), coalesce(sum((back > 0) * (period = 1)), 0),
    coalesce(sum(void * (period = 1)), 0) FROM moved"""
_BY_TOOL = """
  WITH settled AS (
    SELECT coalesce(resolves, seq) AS seq, iif(kind = 'reverse', credit, debit) AS account, kind, amount FROM transfer
    WHERE at >= :since AND at < :until AND (credit = 2 AND kind IN ('posted', 'post', 'void') OR kind = 'reverse'))
  SELECT r.endpoint, sum(s.kind IN ('posted', 'post')), sum(iif(s.kind IN ('posted', 'post'), s.amount, 0)),
    sum(s.kind = 'reverse'), sum(iif(s.kind = 'reverse', s.amount, 0)), sum(s.kind = 'void')
  FROM settled s CROSS JOIN reservation r ON r.account = s.account AND r.transfer = s.seq
  GROUP BY r.endpoint ORDER BY 3 - 5 DESC, r.endpoint"""
_BY_TOKEN = """
  WITH moved AS (
    SELECT iif(debit > 3, debit, credit) AS account,
      sum(iif(kind = 'posted' AND debit = 1, amount, 0)) AS bought,
      sum(iif(kind = 'posted' AND credit = 1, amount, 0)) AS taken,
      sum(iif(credit = 2 AND kind IN ('posted', 'post'), amount, 0)) - sum(iif(kind = 'reverse', amount, 0)) AS used,
      sum(credit = 2 AND kind IN ('posted', 'post')) - sum(kind = 'reverse') AS calls
    FROM transfer WHERE at >= :since AND at < :until GROUP BY 1)
  SELECT substr(t.hash, 1, 16), m.bought, m.taken, m.used, m.calls, a.credits - a.debits
  FROM moved m JOIN token t ON t.account = m.account JOIN account a ON a.id = m.account
  ORDER BY m.used DESC, t.hash"""
_EXPORT = """
  SELECT t.seq, t.at, t.kind, substr(k.hash, 1, 16), t.amount, t.debit = k.account, t.cause, r.call_id, r.endpoint,
    r.reason
  FROM transfer t JOIN token k ON k.account = iif(t.debit > 3, t.debit, t.credit)
    LEFT JOIN reservation r ON r.account = k.account AND r.transfer = coalesce(t.resolves, t.seq)
  WHERE t.at >= :since AND t.at < :until ORDER BY t.seq"""
_HELD = "SELECT coalesce(sum(credits - debits), 0), coalesce(sum(pending), 0) FROM account WHERE kind = 'token'"


class CreditBooks(NamedTuple):
    """The credits of a span of time. `sold`, `granted` and `other` brought credits to tokens; `used` are charges,
    `given_back` those that were taken back. `owed` is what buyers could still spend at its end, reserved or not, and
    `owed_now` what they can spend today.
    """

    owed_before: int = 0
    sold_by_transfer: int = 0
    sold_by_x402: int = 0
    granted: int = 0
    other: int = 0
    taken_back: int = 0
    refunded: int = 0
    used: int = 0
    given_back: int = 0
    owed: int = 0
    owed_now: int = 0
    calls_charged: int = 0
    calls_given_back: int = 0
    calls_released: int = 0


class ToolBooks(NamedTuple):
    """What one endpoint earned: calls and credits that were charged, and those that were given back or released."""

    endpoint: str
    calls: int
    credits: int
    calls_given_back: int
    credits_given_back: int
    calls_released: int


class TokenBooks(NamedTuple):
    """What one token did: credits bought (grants included), taken back and used, its calls, and what it is owed now."""

    fingerprint: str
    bought: int
    taken_back: int
    used: int
    calls: int
    owed_now: int


class BookedTransfer(NamedTuple):
    """One transfer for an export. `at` is in epoch milliseconds; `leaves` says that credits left the token."""

    seq: int
    at: int
    kind: str
    fingerprint: str
    credits: int
    leaves: bool
    cause: str | None
    call_id: str | None
    endpoint: str | None
    reason: str | None


def read_credit_books(db: sqlite3.Connection, since: int, until: int) -> CreditBooks:
    """The credits from `since` to before `until`, in epoch milliseconds. One pass over all transfers."""
    span = {"since": since, "until": until}
    before, after, *within = db.execute(_CALLS, span).fetchone()
    found = dict.fromkeys(CreditBooks._fields, 0) | dict(zip(_OF_CALLS, within, strict=True))
    periods = [-before, found["given_back"] - found["used"], -after]
    for period, source, amount in db.execute(_INCOME, span):
        periods[period] += amount
        found[_ISSUED.get(source, "other")] += amount * (period == 1)
    for period, source, amount in db.execute(_OUTGO, span):
        periods[period] -= amount
        found["refunded" if source == "refund" else "taken_back"] += amount * (period == 1)
    owed = {"owed_before": periods[0], "owed": sum(periods[:2]), "owed_now": sum(periods)}
    return CreditBooks(**(found | owed))


_OF_CALLS = ("used", "given_back", "calls_charged", "calls_given_back", "calls_released")
_ISSUED = {"eip155": "sold_by_transfer", "x402": "sold_by_x402", "grant": "granted"}


def read_tool_books(db: sqlite3.Connection, since: int, until: int) -> list[ToolBooks]:
    """What each endpoint earned in a span of time, the most first."""
    return [ToolBooks(*row) for row in db.execute(_BY_TOOL, {"since": since, "until": until})]


def read_token_books(db: sqlite3.Connection, since: int, until: int) -> list[TokenBooks]:
    """What each token did in a span of time, the busiest first."""
    return [TokenBooks(*row) for row in db.execute(_BY_TOKEN, {"since": since, "until": until})]


def read_transfers(db: sqlite3.Connection, since: int, until: int) -> Iterator[BookedTransfer]:
    """Every transfer of a span of time, in order."""
    for row in db.execute(_EXPORT, {"since": since, "until": until}):
        yield BookedTransfer(*row)._replace(leaves=bool(row[5]))


def read_balances(db: sqlite3.Connection) -> tuple[int, int]:
    """What all accounts say is owed now, and how much of it is reserved for calls in progress."""
    owed, held = db.execute(_HELD).fetchone()
    return int(owed), int(held)
