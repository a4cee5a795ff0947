"""Sums the books of a time span from the ledger's transfers, beside a running service and without its threads.

Every figure is summed from `transfer` alone. Other modules compare it with accounts, reservations and purchases.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.ledger.sql_removed import read_horizon, read_removed
from toolserver.money.ledger.sql_withholding import HELD, RELEASED
from toolserver.sql.connection import SqlConnection, in_order

EVER = 2**62
_WAYS = ("eip155", "x402", "grant", "refund", HELD, RELEASED)  # the prefixes of causes, before a colon
_SOURCE = f"""CASE WHEN cause LIKE 'x402:replaces:%' THEN ''
  {" ".join(f"WHEN cause LIKE '{way}:%' THEN '{way}'" for way in _WAYS)} ELSE '' END"""
_PERIOD = "CASE WHEN at >= :until THEN 2 WHEN at >= :since THEN 1 ELSE 0 END"  # before the span, within, after it
_INCOME = f"""SELECT {_PERIOD}, {_SOURCE}, sum(amount) FROM transfer
  WHERE cause IS NOT NULL AND debit = 1 GROUP BY 1, 2"""
_OUTGO = f"SELECT {_PERIOD}, {_SOURCE}, sum(amount) FROM transfer WHERE debit > 3 AND credit = 1 GROUP BY 1, 2"
_CALLS = f"""
  WITH moved AS (
    SELECT {_PERIOD} AS period, kind, CASE WHEN kind = 'reverse' THEN amount ELSE 0 END AS back,
      CASE WHEN credit = 2 AND kind IN ('posted', 'post') THEN amount ELSE 0 END AS used FROM transfer)
  SELECT coalesce(sum(CASE WHEN period = 0 THEN used - back END), 0),
    coalesce(sum(CASE WHEN period = 2 THEN used - back END), 0),
    coalesce(sum(CASE WHEN period = 1 THEN used END), 0), coalesce(sum(CASE WHEN period = 1 THEN back END), 0),
    count(CASE WHEN period = 1 AND used > 0 THEN 1 END), count(CASE WHEN period = 1 AND back > 0 THEN 1 END),
    count(CASE WHEN period = 1 AND kind = 'void' THEN 1 END) FROM moved"""
_BY_TOOL = """
  WITH settled AS (
    SELECT coalesce(resolves, seq) AS seq, CASE WHEN kind = 'reverse' THEN credit ELSE debit END AS account, kind,
      amount
    FROM transfer
    WHERE at >= :since AND at < :until AND (credit = 2 AND kind IN ('posted', 'post', 'void') OR kind = 'reverse')),
  tools AS (
    SELECT r.endpoint, count(CASE WHEN s.kind IN ('posted', 'post') THEN 1 END) AS calls,
      coalesce(sum(CASE WHEN s.kind IN ('posted', 'post') THEN s.amount END), 0) AS credits,
      count(CASE WHEN s.kind = 'reverse' THEN 1 END) AS calls_back,
      coalesce(sum(CASE WHEN s.kind = 'reverse' THEN s.amount END), 0) AS credits_back,
      count(CASE WHEN s.kind = 'void' THEN 1 END) AS released
    FROM settled s CROSS JOIN reservation r ON r.account = s.account AND r.transfer = s.seq GROUP BY r.endpoint)
  SELECT endpoint, calls, credits, calls_back, credits_back, released FROM tools
  ORDER BY credits - credits_back DESC, endpoint"""
_BY_TOKEN = """
  WITH moved AS (
    SELECT CASE WHEN debit > 3 THEN debit ELSE credit END AS account,
      coalesce(sum(CASE WHEN kind = 'posted' AND debit = 1 AND cause NOT LIKE 'released:%' THEN amount END), 0)
        AS bought,
      coalesce(sum(CASE WHEN kind = 'posted' AND credit = 1 THEN amount
        WHEN debit = 1 AND cause LIKE 'released:%' THEN -amount END), 0) AS taken,
      coalesce(sum(CASE WHEN credit = 2 AND kind IN ('posted', 'post') THEN amount
        WHEN kind = 'reverse' THEN -amount END), 0) AS used,
      coalesce(sum(CASE WHEN credit = 2 AND kind IN ('posted', 'post') THEN 1
        WHEN kind = 'reverse' THEN -1 END), 0) AS calls
    FROM transfer WHERE at >= :since AND at < :until GROUP BY 1)
  SELECT substr(t.hash, 1, 16), m.bought, m.taken, m.used, m.calls, a.credits - a.debits
  FROM moved m JOIN token t ON t.account = m.account JOIN account a ON a.id = m.account
  ORDER BY m.used DESC, t.hash"""
_EXPORT = """
  SELECT t.seq, t.at, t.kind, substr(k.hash, 1, 16), CASE WHEN t.debit = k.account THEN -t.amount ELSE t.amount END,
    t.cause, r.call_id, r.endpoint, r.reason
  FROM transfer t JOIN token k ON k.account = CASE WHEN t.debit > 3 THEN t.debit ELSE t.credit END
    LEFT JOIN reservation r ON r.account = k.account AND r.transfer = coalesce(t.resolves, t.seq)
  WHERE t.at >= :since AND t.at < :until ORDER BY t.seq"""
_HELD = "SELECT coalesce(sum(credits - debits), 0), coalesce(sum(pending), 0) FROM account WHERE kind = 'token'"


class RowsRemoved(ToolserverError):
    """The rows of calls in that time span were archived and removed."""


class CreditBooks(NamedTuple):
    """The credits of a time span. `sold_…`, `granted` and `other` are credits added to tokens.
    `used` are charges, and `given_back` reversed charges. `withheld` are credits of payments
    in doubt, and `released` those of them that came back. `owed` is what buyers could still
    spend at the end of the span, reserved or not, and `owed_now` what they can spend today.
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
    withheld: int = 0
    released: int = 0


class ToolBooks(NamedTuple):
    """The figures of one endpoint: calls and credits that were charged, given back or released."""

    endpoint: str
    calls: int
    credits: int
    calls_given_back: int
    credits_given_back: int
    calls_released: int


class TokenBooks(NamedTuple):
    """The figures of one token: credits bought (with grants), taken back or withheld, and
    used, its calls, and credits owed now.
    """

    fingerprint: str
    bought: int
    taken_back: int
    used: int
    calls: int
    owed_now: int


class BookedTransfer(NamedTuple):
    """One transfer as a line of an export. `at` is in epoch ms; `credits` are negative if they left the token."""

    seq: int
    at: int
    kind: str
    token: str
    credits: int
    cause: str | None
    call_id: str | None
    endpoint: str | None
    reason: str | None


def read_credit_books(db: SqlConnection, since: int, until: int) -> CreditBooks:
    """Return the credits from `since` to before `until`, in epoch milliseconds. Reads all transfers once.

    Raises RowsRemoved, unless the span covers all time: then removed calls count as used, net of reversals.
    """
    span, removed = {"since": since, "until": until}, read_removed(db)
    before, after, *within = db.execute(_CALLS, span).fetchone()
    if since > 0 or until < EVER:
        require_rows(db, since)
        before += removed.used
    else:
        within[0] += removed.used
    credits = dict.fromkeys(CreditBooks._fields, 0) | dict(zip(_OF_CALLS, within, strict=True))
    periods = [-before, credits["given_back"] - credits["used"], -after]
    for period, source, amount in db.execute(_INCOME, span):
        periods[period] += amount
        credits[_ISSUED.get(source, "other")] += amount * (period == 1)
    for period, source, amount in db.execute(_OUTGO, span):
        periods[period] -= amount
        credits[_TAKEN.get(source, "taken_back")] += amount * (period == 1)
    owed = {"owed_before": periods[0], "owed": sum(periods[:2]), "owed_now": sum(periods)}
    return CreditBooks(**(credits | owed))


_OF_CALLS = ("used", "given_back", "calls_charged", "calls_given_back", "calls_released")
_ISSUED = {"eip155": "sold_by_transfer", "x402": "sold_by_x402", "grant": "granted", RELEASED: "released"}
_TAKEN = {"refund": "refunded", HELD: "withheld"}


def read_tool_books(db: SqlConnection, since: int, until: int) -> list[ToolBooks]:
    """Return the figures of each endpoint in a time span, the highest first. Raises RowsRemoved."""
    require_rows(db, since)
    return [ToolBooks(*row) for row in db.execute(in_order(db, _BY_TOOL), {"since": since, "until": until})]


def read_token_books(db: SqlConnection, since: int, until: int) -> list[TokenBooks]:
    """Return the figures of each token in a time span, the busiest first. Raises RowsRemoved."""
    require_rows(db, since)
    return [TokenBooks(*row) for row in db.execute(_BY_TOKEN, {"since": since, "until": until})]


def read_transfers(db: SqlConnection, since: int, until: int) -> Iterator[BookedTransfer]:
    """Yield every transfer of a time span, in order. There may be millions, so each costs
    little. Raises RowsRemoved.
    """
    require_rows(db, since)
    return map(BookedTransfer._make, db.execute(_EXPORT, {"since": since, "until": until}))


def require_rows(db: SqlConnection, since: int) -> None:
    """Raise RowsRemoved if rows of calls at or after that time were removed."""
    if since < (horizon := read_horizon(db)):
        day = datetime.fromtimestamp(horizon / 1000, UTC).date()
        raise RowsRemoved(f"calls before {day} were archived and removed: they are in the archives of their months")


def read_balances(db: SqlConnection) -> tuple[int, int]:
    """Return the credits that all accounts are owed now, and how many of them are reserved for calls in progress."""
    owed, held = db.execute(_HELD).fetchone()
    return int(owed), int(held)
