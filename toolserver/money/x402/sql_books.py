"""Adds up the USDC that came by signed payments (x402) in a span of time. Times are epoch milliseconds."""

from typing import NamedTuple

from toolserver.sql.connection import SqlConnection

_SETTLED = """
  SELECT count(token), coalesce(sum(CASE WHEN token IS NOT NULL THEN amount END), 0), coalesce(sum(credits), 0),
    count(CASE WHEN request NOT LIKE 'topup %' THEN 1 END),
    coalesce(sum(CASE WHEN request NOT LIKE 'topup %' THEN amount END), 0),
    count(CASE WHEN token IS NULL AND request LIKE 'topup %' THEN 1 END),
    coalesce(sum(CASE WHEN token IS NULL AND request LIKE 'topup %' THEN amount END), 0)
  FROM x402_payment WHERE state = 'settled' AND settled_at >= :since AND settled_at < :until"""


class SignedPaymentBooks(NamedTuple):
    """The signed payments of a span of time, in 0.000001 USDC: top-ups with their credits, single calls, and top-ups
    that were paid and not credited, which wait for a person.
    """

    topups: int
    topup_amount: int
    topup_credits: int
    calls: int
    call_amount: int
    uncredited: int
    uncredited_amount: int


def read_signed_payment_books(db: SqlConnection, since: int, until: int) -> SignedPaymentBooks:
    """Return what came by signed payments from `since` to before `until`."""
    return SignedPaymentBooks(*db.execute(_SETTLED, {"since": since, "until": until}).fetchone())
