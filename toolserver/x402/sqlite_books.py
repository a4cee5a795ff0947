"""The USDC that came by signed payments (x402) in a span of time. Times are epoch milliseconds."""

import sqlite3
from typing import NamedTuple

_SETTLED = """
  SELECT coalesce(sum(token IS NOT NULL), 0), coalesce(sum(iif(token IS NOT NULL, amount, 0)), 0),
    coalesce(sum(credits), 0),
    coalesce(sum(request NOT LIKE 'topup %'), 0), coalesce(sum(iif(request NOT LIKE 'topup %', amount, 0)), 0),
    coalesce(sum(token IS NULL AND request LIKE 'topup %'), 0),
    coalesce(sum(iif(token IS NULL AND request LIKE 'topup %', amount, 0)), 0)
  FROM x402_payment WHERE state = 'settled' AND settled_at >= :since AND settled_at < :until"""


class SignedPaymentBooks(NamedTuple):
    """Signed payments of a span of time, in 0.000001 USDC: top-ups with their credits, single calls, and top-ups that
    were made and not credited, which wait for a person.
    """

    topups: int
    topup_amount: int
    topup_credits: int
    calls: int
    call_amount: int
    uncredited: int
    uncredited_amount: int


def read_signed_payment_books(db: sqlite3.Connection, since: int, until: int) -> SignedPaymentBooks:
    """What came by signed payments from `since` to before `until`."""
    return SignedPaymentBooks(*db.execute(_SETTLED, {"since": since, "until": until}).fetchone())
