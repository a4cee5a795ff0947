"""Read the books of a service from its file, whether or not it runs: credits, USDC, and whether the two agree."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from toolserver.money.books.sql_months import find_closed
from toolserver.money.chain.sql_chain_sums import show_state
from toolserver.money.chain.sql_chain_transfers import BookedMovement, read_movements
from toolserver.money.chain.sql_chain_ways import ChainWays, sum_ways
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
from toolserver.money.purchases.listing import show_signed_usd, show_usd
from toolserver.money.receipts.month_statement import MonthSpan, parse_month
from toolserver.sql.connection import SqlConnection, hex_of
from toolserver.sql.ledger_place import LedgerPlace, iterate_place, read_place

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
_UNAPPLIED = """SELECT count(*), coalesce(sum(u.amount), 0)
  FROM unapplied_payment u JOIN purchase p ON p.id = u.purchase
  WHERE u.seen_at >= :since AND u.seen_at < :until
    AND NOT EXISTS (SELECT 1 FROM tx_credit c JOIN purchase b ON b.id = c.purchase
      WHERE c.tx_hash = u.tx_hash AND b.address = p.address AND (c.purchase = u.purchase OR p.hd_index IS NOT NULL))"""


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


_SETTLED = """
  SELECT count(token), coalesce(sum(CASE WHEN token IS NOT NULL THEN amount END), 0), coalesce(sum(credits), 0),
    count(CASE WHEN request NOT LIKE 'topup %' THEN 1 END),
    coalesce(sum(CASE WHEN request NOT LIKE 'topup %' THEN amount END), 0),
    count(CASE WHEN token IS NULL AND request LIKE 'topup %' THEN 1 END),
    coalesce(sum(CASE WHEN token IS NULL AND request LIKE 'topup %' THEN amount END), 0)
  FROM x402_payment WHERE state = 'settled' AND settled_at >= :since AND settled_at < :until"""
_SIGNED_UNDONE = """
  SELECT count(*), coalesce(sum(p.amount), 0), coalesce(sum(c.taken_back), 0), coalesce(sum(c.lost), 0)
  FROM x402_confirmation c JOIN x402_payment p ON p.payload = c.payload
  WHERE c.undone_at >= :since AND c.undone_at < :until"""


class SignedPaymentBooks(NamedTuple):
    """The signed payments of a span of time, in 0.000001 USDC: top-ups with their credits, single calls, top-ups that
    were paid and not credited, which wait for a person, and those that are no longer on the chain, as `TransferBooks`
    has them.
    """

    topups: int
    topup_amount: int
    topup_credits: int
    calls: int
    call_amount: int
    uncredited: int
    uncredited_amount: int
    undone: int
    undone_amount: int
    credits_taken_back: int
    credits_lost: int


def read_signed_payment_books(db: SqlConnection, since: int, until: int) -> SignedPaymentBooks:
    """Return what came by signed payments from `since` to before `until`."""
    span = {"since": since, "until": until}
    return SignedPaymentBooks(*db.execute(_SETTLED, span).fetchone(), *db.execute(_SIGNED_UNDONE, span).fetchone())


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


def list_movements(place: LedgerPlace, since: int, until: int) -> Iterator[BookedMovement]:
    """Yield every transfer on the chain in blocks of the span, in the order of the blocks. Raises StorageFailed."""
    return iterate_place(place, lambda db: read_movements(db, since, until))


def _read_books(db: SqlConnection, since: int, until: int) -> dict[str, Any]:
    credits = _read_credits(db, since, until)
    transfers, signed = read_transfer_books(db, since, until), read_signed_payment_books(db, since, until)
    refunds = read_refund_books(db, since, until)
    problems = [*_compare_ways(credits, transfers, signed, refunds), *_compare_balances(credits.owed_now, db)]
    return {
        "credits": credits._asdict(),
        "usdc": show_usdc(transfers, signed) | _show_refunds(refunds),
        "on_chain": _show_ways(sum_ways(db, since, until)),
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


def read_usdc(db: SqlConnection, since: int, until: int) -> dict[str, int]:
    """Return what was paid from `since` to before `until`, by way and state, in 0.000001 USDC."""
    transfers, signed = read_transfer_books(db, since, until), read_signed_payment_books(db, since, until)
    refunds = read_refund_books(db, since, until)
    return {
        "by_transfer": int(transfers.amount),
        "by_x402_topup": int(signed.topup_amount),
        "by_x402_call": int(signed.call_amount),
        "uncredited_x402": int(signed.uncredited_amount),
        "unapplied": int(transfers.unapplied_amount),
        "undone_on_chain": int(transfers.undone_amount + signed.undone_amount),
        "paid_back": int(refunds.amount),
        "to_pay_back": int(refunds.open_amount),
    }


def compare_books(db: SqlConnection, since: int, until: int) -> Iterator[str]:
    """Yield disagreements between the ledger's transfers, the tables of payments and the accounts."""
    yield from _read_books(db, since, until)["problems"]


def show_usdc(transfers: TransferBooks, signed: SignedPaymentBooks) -> dict[str, Any]:
    """Show what came, by way. What the chain took back in the span is no longer received, whenever it had come."""
    received = transfers.amount + signed.topup_amount + signed.call_amount + signed.uncredited_amount
    undone = transfers.undone_amount + signed.undone_amount
    return {
        "received_usd": show_signed_usd(received + transfers.unapplied_amount - undone),
        "by_transfer": {"payments": transfers.payments, "usd": show_usd(transfers.amount)},
        "by_x402_topup": {"payments": signed.topups, "usd": show_usd(signed.topup_amount)},
        "by_x402_call": {"payments": signed.calls, "usd": show_usd(signed.call_amount)},
        "uncredited_x402": {"payments": signed.uncredited, "usd": show_usd(signed.uncredited_amount)},
        "unapplied": {"payments": transfers.unapplied, "usd": show_usd(transfers.unapplied_amount)},
        "undone_on_chain": {
            "payments": transfers.undone + signed.undone,
            "usd": show_usd(undone),
            "credits_taken_back": transfers.credits_taken_back + signed.credits_taken_back,
            "credits_lost": transfers.credits_lost + signed.credits_lost,
        },
    }


def _show_ways(ways: ChainWays | None) -> dict[str, Any]:
    """Show the transfers on the chain by way and state, with what came to our addresses and what left them."""
    return {way: {state: show_state(sums) for state, sums in states.items()} for way, states in (ways or {}).items()}


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
