"""Read which payments wait for a person or for the chain, whether or not the service runs."""

from typing import Any, NamedTuple

from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.listing import show_case
from toolserver.money.purchases.sql_doubts import read_review_cases
from toolserver.money.purchases.store import read_cases, read_purchases
from toolserver.money.x402.records import show_pending
from toolserver.money.x402.store import read_confirmation_cases, read_payment_cases, read_pending
from toolserver.sql.ledger_place import LedgerPlace

QUOTES_READ = 1000


class OpenQuotes(NamedTuple):
    """Offers to buy credits that have not expired, and their sum in USD. `more`: only the newest were counted."""

    number: int
    usd: float
    more: bool


def list_open_cases(path: LedgerPlace, now: int, limit: int) -> list[dict[str, Any]]:
    """List cases that need attention, oldest first, as `show_case` writes them. `now` is in milliseconds.

    Raises StorageFailed.
    """
    cases = read_cases(path) + read_payment_cases(path, now)
    cases += read_review_cases(path) + read_confirmation_cases(path)
    return [show_case(case) for case in sorted(cases, key=lambda case: case.at)[:limit]]


def list_pending_payments(path: LedgerPlace, now: int, limit: int) -> list[dict[str, Any]]:
    """List signed payments (x402) that are not settled, as `show_pending` writes them. Raises StorageFailed."""
    return [show_pending(payment, now) for payment in read_pending(path)[:limit]]


def sum_open_quotes(path: LedgerPlace, now: int) -> OpenQuotes:
    """Sum the offers that can still be paid in time. `now` is in milliseconds. Raises StorageFailed."""
    quotes = read_purchases(path, "quoted", QUOTES_READ)
    valid = [quote for quote in quotes if quote.expires > now]
    return OpenQuotes(len(valid), sum(quote.amount for quote in valid) / ATOMIC, len(quotes) == QUOTES_READ)
