"""Describes the payments that need a person: for example, money that bought nothing, and credits that were spent before
their payment was undone.
"""

from typing import Any, Literal, NamedTuple

from toolserver.money.purchases.deposit import checksum_address
from toolserver.money.purchases.listing import show_time, show_usd

CaseKind = Literal["unapplied", "undone", "unsettled", "uncredited", "unanswered", "disputed", "held"]


class ReviewCase(NamedTuple):
    """One case. `reason` says why money bought nothing; `lost` counts the credits of an undone payment that were spent.

    RPC servers disagree about a `disputed` payment; a `held` one exceeds a ceiling and waits for approval.

    `unsettled`, `uncredited` and `unanswered` are signed payments (x402): for these `wallet` is the account that paid,
    `reason` is what it paid for, and `tx` is None while no transaction is known. `amount` is in 0.000001 USDC, `at` in
    epoch milliseconds.
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
