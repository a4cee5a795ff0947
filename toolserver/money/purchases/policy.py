"""Decides by its amount how many confirmations a payment needs, and whether two servers must agree on it. Pure."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import Receipt, Transaction
from toolserver.settings import PaymentSettings

Finality = Literal["blocks", "safe", "finalized"]


class ObservedTransaction(NamedTuple):
    """A transaction as one RPC server reports it.

    `canonical` is the hash of the block that the server has at the receipt's height; when the receipt names another
    block, it belongs to a fork. `latest`, `safe` and `finalized` are block heights; `block_time` is in epoch seconds.
    """

    receipt: Receipt
    transaction: Transaction
    canonical: bytes
    block_time: int
    latest: int
    safe: int
    finalized: int

    @property
    def is_canonical(self) -> bool:
        """True if the receipt belongs to the chain and not to a fork."""
        return self.canonical == self.receipt.block_hash

    @property
    def agreed_fields(self) -> tuple[object, ...]:
        """The fields that two servers have to report alike."""
        return self.receipt.status, self.receipt.block_hash, self.receipt.logs, self.canonical


class Progress(NamedTuple):
    """The number of blocks on top of the payment's own, the number required, and whether the payment is settled."""

    confirmations: int
    required: int
    enough: bool


@dataclass(frozen=True)
class Policy:
    """The amounts, in 0.000001 USDC, from which a payment needs more than block confirmations.

    Smaller payments need `blocks` confirmations. When `agree_from` is None, one RPC server is always enough.
    """

    blocks: int = 3
    safe_from: int = 100 * ATOMIC
    finalized_from: int = 10_000 * ATOMIC
    agree_from: int | None = 1000 * ATOMIC

    def finality(self, amount: int) -> Finality:
        """Return the kind of confirmation that a payment needs."""
        if amount >= self.finalized_from:
            return "finalized"
        return "safe" if amount >= self.safe_from else "blocks"

    def needs_agreement(self, amount: int) -> bool:
        """Return True if a second RPC server has to report the same."""
        return self.agree_from is not None and amount >= self.agree_from

    def progress(self, seen: ObservedTransaction, amount: int) -> Progress:
        """Return how far the confirmation of a payment has come."""
        height, on_top = seen.receipt.block_number, max(0, seen.latest - seen.receipt.block_number)
        finality = self.finality(amount)
        if finality == "blocks":
            return Progress(on_top, self.blocks, seen.is_canonical and on_top >= self.blocks)
        reached = seen.safe if finality == "safe" else seen.finalized
        enough = seen.is_canonical and reached >= height
        return Progress(on_top, on_top if enough else max(on_top + 1, seen.latest - reached), enough)


def policy_of(settings: PaymentSettings) -> Policy:
    """Return the policy that the settings define: what a payment needs by its amount."""
    return Policy(
        settings.confirmations,
        settings.safe_from_usd * ATOMIC,
        settings.finalized_from_usd * ATOMIC,
        None if settings.agree_from_usd is None else settings.agree_from_usd * ATOMIC,
    )


SKEW_S = 120  # how far the clocks of the chain and of this machine may differ


def is_older(block_time: float, quoted_at: float, now: float) -> bool:
    """Return True if a transaction was made before its quote, and so for another buyer. Times are in epoch seconds.

    A quote from the future proves nothing: our clock was ahead when it was made, and has been set back since.
    """
    return block_time < quoted_at - SKEW_S and now >= quoted_at - SKEW_S
