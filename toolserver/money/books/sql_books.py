"""Read the books of a service from its file, whether or not it runs: credits, USDC, and whether the two agree."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from toolserver.money.books.sql_months import find_closed
from toolserver.money.ledger.sql_books import (
    EVER,
    BookedTransfer,
    CreditBooks,
    TokenBooks,
    ToolBooks,
    read_balances,
    read_credit_books,
    read_token_books,
    read_tool_books,
    read_transfers,
)
from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.purchases.listing import show_usd
from toolserver.money.purchases.sql_books import RefundBooks, TransferBooks, read_refund_books, read_transfer_books
from toolserver.money.receipts.month_statement import MonthSpan, parse_month
from toolserver.money.x402.sql_books import SignedPaymentBooks, read_signed_payment_books
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, iterate_place, read_place


def read_books(place: LedgerPlace, since: int, until: int) -> dict[str, Any]:
    """Return credits sold, used and owed, USDC by payment method, and disagreements, from one snapshot of the file.

    The span is half open, in epoch milliseconds. Raises StorageFailed.
    """
    return read_place(place, partial(_read_books, since=since, until=until))


def read_tools(place: LedgerPlace, since: int, until: int) -> list[ToolBooks]:
    """Return what each endpoint earned. Raises StorageFailed."""
    return read_place(place, partial(read_tool_books, since=since, until=until))


def read_tokens(place: LedgerPlace, since: int, until: int) -> list[TokenBooks]:
    """Return what each token bought and used. Raises StorageFailed."""
    return read_place(place, partial(read_token_books, since=since, until=until))


def list_transfers(place: LedgerPlace, since: int, until: int) -> Iterator[BookedTransfer]:
    """Yield every transfer of the span in order; from a file, without holding all in memory. Raises StorageFailed."""
    return iterate_place(place, lambda db: read_transfers(db, since, until))


def _read_books(db: SqlConnection, since: int, until: int) -> dict[str, Any]:
    credits = _read_credits(db, since, until)
    transfers, signed = read_transfer_books(db, since, until), read_signed_payment_books(db, since, until)
    refunds = read_refund_books(db, since, until)
    problems = [*_compare_ways(credits, transfers, signed, refunds), *_compare_balances(credits.owed_now, db)]
    return {
        "credits": credits._asdict(),
        "usdc": _show_usdc(transfers, signed) | _show_refunds(refunds),
        "agrees": not problems,
        "problems": problems,
    }


def _read_credits(db: SqlConnection, since: int, until: int) -> CreditBooks:
    """Return the credits of a span. For a month whose rows were removed, they come from its signed statement."""
    month = MonthSpan.at(since)
    if since < read_horizon(db) and (month.since, month.until) == (since, until):
        closed = find_closed(db, month)
        if closed is not None:
            said = parse_month(closed.statement).statement.credits
            return CreditBooks(**said, owed_now=read_credit_books(db, 0, EVER).owed_now)
    return read_credit_books(db, since, until)


def compare_books(db: SqlConnection, since: int, until: int) -> Iterator[str]:
    """Yield disagreements between the ledger's transfers, the tables of payments and the accounts."""
    yield from _read_books(db, since, until)["problems"]


def _show_usdc(transfers: TransferBooks, signed: SignedPaymentBooks) -> dict[str, Any]:
    received = transfers.amount + signed.topup_amount + signed.call_amount + signed.uncredited_amount
    return {
        "received_usd": show_usd(received + transfers.unapplied_amount),
        "by_transfer": {"payments": transfers.payments, "usd": show_usd(transfers.amount)},
        "by_x402_topup": {"payments": signed.topups, "usd": show_usd(signed.topup_amount)},
        "by_x402_call": {"payments": signed.calls, "usd": show_usd(signed.call_amount)},
        "uncredited_x402": {"payments": signed.uncredited, "usd": show_usd(signed.uncredited_amount)},
        "unapplied": {"payments": transfers.unapplied, "usd": show_usd(transfers.unapplied_amount)},
        "undone_on_chain": {
            "payments": transfers.undone,
            "usd": show_usd(transfers.undone_amount),
            "credits_taken_back": transfers.credits_taken_back,
            "credits_lost": transfers.credits_lost,
        },
    }


def _show_refunds(refunds: RefundBooks) -> dict[str, Any]:
    return {
        "paid_back": {"payments": refunds.payments, "usd": show_usd(refunds.amount)},
        "to_pay_back": {"payments": refunds.open, "usd": show_usd(refunds.open_amount)},
    }


def _compare_ways(
    credits: CreditBooks, transfers: TransferBooks, signed: SignedPaymentBooks, refunds: RefundBooks
) -> Iterator[str]:
    """Check that each way of paying added or removed as many credits in the ledger as its own table says."""
    pairs = (
        ("transfers", credits.sold_by_transfer, transfers.credits),
        ("x402 top-ups", credits.sold_by_x402, signed.topup_credits),
        ("refunds", credits.refunded, refunds.credits),
    )
    for way, booked, paid in pairs:
        if booked != paid:
            yield f"{way}: the ledger has {booked} credits, but the payments have {paid}"


def _compare_balances(said: int, db: SqlConnection) -> Iterator[str]:
    """Check that the credits owed by the transfers equal those in the accounts."""
    owed, _ = read_balances(db)
    if said != owed:
        yield f"owed now: {said} credits by the transfers, but {owed} by the accounts"
