"""How long a payment has to wait, and who has to vouch for it: the larger, the more. Pure."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolserver.payments.matching import Receipt, Transaction
from toolserver.payments.units import ATOMIC

Finality = Literal["blocks", "safe", "finalized"]


class Sighting(NamedTuple):
    """A transaction as one RPC server sees it.

    `canonical` is the hash of the block that the server has at the receipt's height: a receipt of another block is of
    a fork. `latest`, `safe` and `finalized` are the heights of the chain; `block_time` is in epoch seconds.
    """

    receipt: Receipt
    transaction: Transaction
    canonical: bytes
    block_time: int
    latest: int
    safe: int
    finalized: int

    @property
    def settled(self) -> bool:
        """Whether the receipt is of the chain, not of a fork."""
        return self.canonical == self.receipt.block_hash

    @property
    def said(self) -> tuple[object, ...]:
        """What two servers have to agree on."""
        return self.receipt.status, self.receipt.block_hash, self.receipt.logs, self.canonical


class Progress(NamedTuple):
    """How many blocks lie on top, how many there must be, and whether that is enough."""

    confirmations: int
    required: int
    enough: bool


@dataclass(frozen=True)
class Policy:
    """From which amount on (0.000001 USDC) what is required. `agree_from` None: one server is always believed."""

    blocks: int = 3
    safe_from: int = 100 * ATOMIC
    finalized_from: int = 10_000 * ATOMIC
    agree_from: int | None = 1000 * ATOMIC

    def finality(self, amount: int) -> Finality:
        """What a payment has to wait for."""
        if amount >= self.finalized_from:
            return "finalized"
        return "safe" if amount >= self.safe_from else "blocks"

    def needs_agreement(self, amount: int) -> bool:
        """Whether a second server has to say the same."""
        return self.agree_from is not None and amount >= self.agree_from

    def progress(self, seen: Sighting, amount: int) -> Progress:
        """How far a payment has come."""
        height, on_top = seen.receipt.block_number, max(0, seen.latest - seen.receipt.block_number)
        finality = self.finality(amount)
        if finality == "blocks":
            return Progress(on_top, self.blocks, seen.settled and on_top >= self.blocks)
        reached = seen.safe if finality == "safe" else seen.finalized
        enough = seen.settled and reached >= height
        return Progress(on_top, on_top if enough else max(on_top + 1, seen.latest - reached), enough)
