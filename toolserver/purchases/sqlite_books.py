"""The USDC that came by transfers in a span of time, from the tables of purchases. Times are epoch milliseconds."""

import sqlite3
from typing import NamedTuple

_CREDITED = """
  WITH credited AS (
    SELECT amount, credits, credited_at AS at FROM tx_credit
    UNION ALL
    SELECT r.amount, r.credits, (SELECT t.at FROM transfer t WHERE t.cause =
      'eip155:' || r.chain_id || ':0x' || lower(hex(r.tx_hash)) || ':' ||
      (SELECT count(*) FROM tx_reversal e WHERE e.purchase = r.purchase AND e.id < r.id))
    FROM tx_reversal r)
  SELECT count(*), coalesce(sum(amount), 0), coalesce(sum(credits), 0)
  FROM credited WHERE at >= :since AND at < :until"""
_UNDONE = """SELECT count(*), coalesce(sum(amount), 0), coalesce(sum(taken_back), 0), coalesce(sum(lost), 0)
  FROM tx_reversal WHERE at >= :since AND at < :until"""
_UNAPPLIED = """SELECT count(*), coalesce(sum(amount), 0) FROM unapplied_payment u
  WHERE seen_at >= :since AND seen_at < :until
    AND NOT EXISTS (SELECT 1 FROM tx_credit c WHERE c.tx_hash = u.tx_hash AND c.purchase = u.purchase)"""


_REFUNDED = """SELECT coalesce(sum(iif(booked_at >= :since AND booked_at < :until, credits, 0)), 0),
    coalesce(sum(state = 'paid' AND ended_at >= :since AND ended_at < :until), 0),
    coalesce(sum(iif(state = 'paid' AND ended_at >= :since AND ended_at < :until, amount, 0)), 0),
    coalesce(sum(state IN ('booked', 'sent')), 0), coalesce(sum(iif(state IN ('booked', 'sent'), amount, 0)), 0)
  FROM refund"""


class RefundBooks(NamedTuple):
    """Refunds of a span of time: credits that left tokens, and payments in 0.000001 USDC. `open` ones were booked, at
    any time, and are not paid yet.
    """

    credits: int
    payments: int
    amount: int
    open: int
    open_amount: int


class TransferBooks(NamedTuple):
    """Transfers of a span of time, in 0.000001 USDC and credits. `undone` ones are no longer on the chain: of their
    credits some were taken back, and those that had been spent are lost. `unapplied` ones bought nothing.
    """

    payments: int
    amount: int
    credits: int
    undone: int
    undone_amount: int
    credits_taken_back: int
    credits_lost: int
    unapplied: int
    unapplied_amount: int


def read_transfer_books(db: sqlite3.Connection, since: int, until: int) -> TransferBooks:
    """What came by transfers from `since` to before `until`."""
    span = {"since": since, "until": until}
    credited, undone, unapplied = (db.execute(sql, span).fetchone() for sql in (_CREDITED, _UNDONE, _UNAPPLIED))
    return TransferBooks(*credited, *undone, *unapplied)


def read_refund_books(db: sqlite3.Connection, since: int, until: int) -> RefundBooks:
    """What was paid back from `since` to before `until`."""
    return RefundBooks(*db.execute(_REFUNDED, {"since": since, "until": until}).fetchone())
