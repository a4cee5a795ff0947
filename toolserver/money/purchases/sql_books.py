"""Adds up the USDC that came by transfers in a span of time, from the tables of purchases. Times are epoch
milliseconds.
"""

from typing import NamedTuple

from toolserver.sql.connection import SqlConnection, hex_of

_CREDITED = """WITH credited AS (
    SELECT amount, credits, credited_at AS at FROM tx_credit
    UNION ALL
    SELECT r.amount, r.credits, (SELECT t.at FROM transfer t WHERE t.cause =
      'eip155:' || r.chain_id || ':0x' || {tx_hash} || ':' ||
      (SELECT count(*) FROM tx_reversal e WHERE e.purchase = r.purchase AND e.id < r.id))
    FROM tx_reversal r)
  SELECT count(*), coalesce(sum(amount), 0), coalesce(sum(credits), 0)
  FROM credited WHERE at >= :since AND at < :until"""
_UNDONE = """SELECT count(*), coalesce(sum(amount), 0), coalesce(sum(taken_back), 0), coalesce(sum(lost), 0)
  FROM tx_reversal WHERE at >= :since AND at < :until"""
_UNAPPLIED = """SELECT count(*), coalesce(sum(amount), 0) FROM unapplied_payment u
  WHERE seen_at >= :since AND seen_at < :until
    AND NOT EXISTS (SELECT 1 FROM tx_credit c WHERE c.tx_hash = u.tx_hash AND c.purchase = u.purchase)"""


_BOOKED = "booked_at >= :since AND booked_at < :until"
_PAID = "state = 'paid' AND ended_at >= :since AND ended_at < :until"
_REFUNDED = f"""SELECT coalesce(sum(CASE WHEN {_BOOKED} THEN credits END), 0),
    count(CASE WHEN {_PAID} THEN 1 END), coalesce(sum(CASE WHEN {_PAID} THEN amount END), 0),
    count(CASE WHEN state IN ('booked', 'sent') THEN 1 END),
    coalesce(sum(CASE WHEN state IN ('booked', 'sent') THEN amount END), 0)
  FROM refund"""


class RefundBooks(NamedTuple):
    """The refunds of a span of time: credits that left tokens, and payments in 0.000001 USDC. `open` refunds were
    booked at any time and are not paid yet.
    """

    credits: int
    payments: int
    amount: int
    open: int
    open_amount: int


class TransferBooks(NamedTuple):
    """The transfers of a span of time, in 0.000001 USDC and credits. `undone` transfers are no longer on the chain:
    some of their credits were taken back, and those that had been spent are lost. `unapplied` transfers bought nothing.
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


def read_transfer_books(db: SqlConnection, since: int, until: int) -> TransferBooks:
    """Return what came by transfers from `since` to before `until`."""
    span = {"since": since, "until": until}
    queries = (_CREDITED.format(tx_hash=hex_of(db, "r.tx_hash")), _UNDONE, _UNAPPLIED)
    credited, undone, unapplied = (db.execute(sql, span).fetchone() for sql in queries)
    return TransferBooks(*credited, *undone, *unapplied)


def read_refund_books(db: SqlConnection, since: int, until: int) -> RefundBooks:
    """Return what was paid back from `since` to before `until`."""
    return RefundBooks(*db.execute(_REFUNDED, {"since": since, "until": until}).fetchone())
