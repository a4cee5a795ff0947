"""Formats purchases for operators. Neither memos nor tokens are stored, so neither can be shown."""

from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from toolserver.core.models import iso
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.credit_price import ATOMIC


class ListedPurchase(NamedTuple):
    """One purchase. `amount` (0.000001 USDC) and `credits` are the quoted ones, or the paid ones once it is credited.

    `created` and `expires` are epoch milliseconds; `tx` is the hash of the transaction that paid.
    """

    id: int
    state: str
    amount: int
    credits: int
    address: bytes
    created: int
    expires: int
    tx: bytes | None


def show_purchase(purchase: ListedPurchase) -> dict[str, Any]:
    """Return a purchase as JSON, with the amount in USD, times in ISO 8601 and the address with its checksum."""
    return {
        "id": purchase.id,
        "state": purchase.state,
        "amount_usd": show_usd(purchase.amount),
        "credits": purchase.credits,
        "address": checksum_address(purchase.address),
        "created": show_time(purchase.created),
        "expires": show_time(purchase.expires),
        "tx": None if purchase.tx is None else f"0x{purchase.tx.hex()}",
    }


def show_usd(amount: int) -> str:
    """Return an amount in 0.000001 USDC as dollars with six decimals."""
    return f"{amount // ATOMIC}.{amount % ATOMIC:06}"


def show_signed_usd(amount: int) -> str:
    """Return an amount in 0.000001 USDC that may be negative as dollars with six decimals."""
    return f"{'-' if amount < 0 else ''}{show_usd(abs(amount))}"


def show_time(milliseconds: int) -> str:
    """Return epoch milliseconds as ISO 8601, in whole seconds."""
    return iso(datetime.fromtimestamp(milliseconds // 1000, UTC))


CaseKind = Literal["unapplied", "undone", "unsettled", "uncredited", "unanswered", "disputed", "held"]


class ReviewCase(NamedTuple):
    """One case. `reason` says why money bought nothing; `lost` counts the credits of an undone payment that were spent.

    RPC servers disagree about a `disputed` payment; a `held` one exceeds a ceiling and waits for approval.

    `unsettled`, `uncredited` and `unanswered` are signed payments (x402): for these `wallet`
    is the account that paid, `reason` is what it paid for, and `tx` is None while no
    transaction is known. `amount` is in 0.000001 USDC, `at` in epoch milliseconds.
    """

    kind: CaseKind
    tx: bytes | None
    wallet: bytes
    amount: int
    reason: str | None
    lost: int | None
    at: int


def show_case(case: ReviewCase) -> dict[str, Any]:
    """Return a case as JSON, with the amount in USD, the time in ISO 8601 and the address with its checksum."""
    return {
        "kind": case.kind,
        "tx": None if case.tx is None else f"0x{case.tx.hex()}",
        "wallet": checksum_address(case.wallet),
        "amount_usd": show_usd(case.amount),
        "reason": case.reason,
        "lost": case.lost,
        "at": show_time(case.at),
    }
