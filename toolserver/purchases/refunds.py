"""Refunds: unspent credits are taken from a token, and their price is paid to an address that the buyer proved.

    asked ── proved ──▶ booked ── submitted ──▶ sent ── on the chain ──▶ paid
      └── cancelled ◀──── (while nothing was written out to sign)

The credits leave in the transaction that stores the proof. The money moves by an authorisation (EIP-3009) whose nonce
follows from the refund, so that it is paid once whatever is signed, submitted or interrupted how often.
"""

from typing import Any, Literal, NamedTuple

from eth_utils.crypto import keccak

from toolserver.core.credit_price import ATOMIC_PER_CREDIT
from toolserver.errors import ToolserverError
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.listing import show_time, show_usd
from toolserver.purchases.transfer_authorization import Authorization

PROVE_MS = 7 * 86_400_000  # how long a proof may take

RefundState = Literal["asked", "booked", "sent", "paid", "cancelled"]


class RefundRefused(ToolserverError):
    """It cannot be refunded, and the text says why. Nothing was changed."""


class RefundDraft(NamedTuple):
    """A refund that is asked for. `token` is the hash that names the account; times are in milliseconds."""

    id: str
    token: str
    payee: bytes
    credits: int
    reason: str
    asked_at: int

    @property
    def amount(self) -> int:
        """What is paid back, in 0.000001 USDC."""
        return self.credits * ATOMIC_PER_CREDIT

    @property
    def expires_at(self) -> int:
        return self.asked_at + PROVE_MS


class StoredRefund(NamedTuple):
    """A refund as it is stored. `fingerprint` is that of the token which opens the account."""

    id: str
    token: str
    payee: bytes
    credits: int
    amount: int
    reason: str
    state: RefundState
    asked_at: int
    expires_at: int
    proof: str | None
    payer: bytes | None
    booked_at: int | None
    planned_at: int | None
    tx_hash: bytes | None
    ended_at: int | None
    fingerprint: str

    @property
    def cause(self) -> str:
        """What the ledger has the credits leave for."""
        return f"refund:{self.id}:{self.reason}"

    def authorize(self, valid_before: int) -> Authorization:
        """The transfer that pays it. Raises RefundRefused unless its credits have left the token."""
        if self.payer is None or self.state not in ("booked", "sent"):
            raise RefundRefused(f"{self.id} is {self.state}: there is nothing to pay")
        return Authorization(self.payer, self.payee, self.amount, valid_before, nonce_of(self.id))


class RefundRoom(NamedTuple):
    """How much may be refunded: credits that can be spent, and those that were paid for, finally, and not refunded."""

    spendable: int
    paid_for: int

    def require(self, credits: int) -> None:
        """Raises RefundRefused."""
        if credits > self.spendable:
            raise RefundRefused(f"the token holds {self.spendable} credits that are not reserved")
        if credits > self.paid_for:
            raise RefundRefused(
                f"{max(0, self.paid_for)} credits were paid for, beyond recall on the chain, and not refunded before;"
                " credits that were given are not refunded"
            )


def nonce_of(id: str) -> bytes:
    """The nonce of the authorisation that pays a refund: on the chain it is spent once."""
    return keccak(text=f"toolserver refund {id}")


def require_bookable(found: StoredRefund, now: int) -> None:
    """Raises RefundRefused unless a refund waits for its proof."""
    if found.state != "asked":
        raise RefundRefused(f"{found.id} is {found.state}")
    if now > found.expires_at:
        raise RefundRefused(f"the time to prove {found.id} was over at {show_time(found.expires_at)}: ask again")


def require_cancellable(found: StoredRefund) -> None:
    """Raises RefundRefused where the money has moved, or may: something was written out to be signed."""
    if found.state not in ("asked", "booked") or found.planned_at is not None:
        state = "may be signed already" if found.state == "booked" else f"is {found.state}"
        raise RefundRefused(f"{found.id} {state} and cannot be cancelled")


def show_refund(found: StoredRefund) -> dict[str, Any]:
    """A refund as JSON."""
    return {
        "id": found.id,
        "state": found.state,
        "token_fp": found.fingerprint,
        "credits": found.credits,
        "amount_usd": show_usd(found.amount),
        "to": checksum_address(found.payee),
        "from": None if found.payer is None else checksum_address(found.payer),
        "reason": found.reason,
        "proof": found.proof,
        "asked": show_time(found.asked_at),
        "booked": None if found.booked_at is None else show_time(found.booked_at),
        "ended": None if found.ended_at is None else show_time(found.ended_at),
        "tx": None if found.tx_hash is None else f"0x{found.tx_hash.hex()}",
    }
