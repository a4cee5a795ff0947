"""What needs a person: money that bought nothing, and credits that were spent before their payment was undone."""

from typing import Any, Literal, NamedTuple

from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.listing import show_time, show_usd

CaseKind = Literal["unapplied", "undone", "unsettled", "uncredited", "unanswered", "disputed", "held"]


class ReviewCase(NamedTuple):
    """One case. `reason` says why money bought nothing; `lost` counts the credits spent of an undone payment.

    Of `disputed` ones two RPC servers tell different things; `held` ones exceed a ceiling and wait for approval.

    The three kinds before them are signed payments (x402): there `wallet` is the account that paid, and `reason` what
    it paid for; `tx` is None while no transaction is known. `amount` is in 0.000001 USDC, `at` in milliseconds.
    """

    kind: CaseKind
    tx: bytes | None
    wallet: bytes
    amount: int
    reason: str | None
    lost: int | None
    at: int


def show_case(case: ReviewCase) -> dict[str, Any]:
    """A case as JSON, with the amount in USD, the time in ISO 8601 and the address with its checksum."""
    return {
        "kind": case.kind,
        "tx": None if case.tx is None else f"0x{case.tx.hex()}",
        "wallet": checksum_address(case.wallet),
        "amount_usd": show_usd(case.amount),
        "reason": case.reason,
        "lost": case.lost,
        "at": show_time(case.at),
    }
