"""Defines refunds: unspent credits leave a token, and their price is paid to the address that the buyer signed for.

    asked ── proved ──▶ booked ── submitted ──▶ sent ── on the chain ──▶ paid
      └── cancelled ◀──── (until its payment is written into a plan to sign)

The credits leave the token in the transaction that stores the proof. The money moves by an
authorisation (EIP-3009) whose nonce is derived from the refund's id, so that a refund is paid
once, however often it is signed, submitted or interrupted.
"""

from typing import Any, Literal, NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address, keccak
from toolserver.money.purchases.credit_price import ATOMIC_PER_CREDIT
from toolserver.money.purchases.listing import show_time, show_usd
from toolserver.money.purchases.transfer_authorization import Authorization

PROVE_MS = 7 * 86_400_000  # how long a proof may take

RefundState = Literal["asked", "booked", "sent", "paid", "cancelled"]


class RefundRefused(ToolserverError):
    """The refund is not possible. The text says why. Nothing was changed."""


class RefundDraft(NamedTuple):
    """A refund as it is requested. `token` is the hash that names the account; times are in epoch milliseconds."""

    id: str
    token: str
    payee: bytes
    credits: int
    reason: str
    asked_at: int

    @property
    def amount(self) -> int:
        """The amount that is paid back, in 0.000001 USDC."""
        return self.credits * ATOMIC_PER_CREDIT

    @property
    def expires_at(self) -> int:
        return self.asked_at + PROVE_MS


class StoredRefund(NamedTuple):
    """A refund as it is stored. `fingerprint` is that of the token that opens the account now,
    `amount` is in 0.000001 USDC, times are in epoch milliseconds.
    """

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
        """The cause under which the ledger books the credits that leave the token."""
        return f"refund:{self.id}:{self.reason}"

    def authorize(self, valid_before: int) -> Authorization:
        """Return the transfer that pays the refund, valid until `valid_before` (epoch seconds).

        Raises RefundRefused unless its credits have left the token and it is not paid.
        """
        if self.payer is None or self.state not in ("booked", "sent"):
            raise RefundRefused(f"{self.id} is {self.state}: there is nothing to pay")
        return Authorization(self.payer, self.payee, self.amount, valid_before, nonce_of(self.id))


class RefundRoom(NamedTuple):
    """The two limits of a refund, in credits: those that can be spent, and those that were
    paid for by payments that are final on the chain and have not been refunded.
    """

    spendable: int
    paid_for: int

    def require(self, credits: int) -> None:
        """Raise RefundRefused if so many credits exceed one of the limits."""
        if credits > self.spendable:
            raise RefundRefused(f"the token holds only {self.spendable} credits that are not reserved")
        if credits > self.paid_for:
            raise RefundRefused(
                f"only {max(0, self.paid_for)} credits were paid for by payments that are final on the chain and have"
                " not been refunded; credits that were granted are not refunded"
            )


def nonce_of(id: str) -> bytes:
    """Return the nonce of the authorisation that pays a refund. The chain accepts it once."""
    return keccak(f"toolserver refund {id}".encode())


def require_bookable(refund: StoredRefund, now: int) -> None:
    """Raise RefundRefused unless a refund still waits for its proof. `now` is in epoch milliseconds."""
    if refund.state != "asked":
        raise RefundRefused(f"{refund.id} is {refund.state}")
    if now > refund.expires_at:
        raise RefundRefused(f"the time to prove {refund.id} ended at {show_time(refund.expires_at)}: ask again")


def require_cancellable(refund: StoredRefund) -> None:
    """Raise RefundRefused if the money has moved or may move, because the payment is in a plan that may be signed."""
    if refund.state not in ("asked", "booked") or refund.planned_at is not None:
        state = "may be signed already" if refund.state == "booked" else f"is {refund.state}"
        raise RefundRefused(f"{refund.id} {state} and cannot be cancelled")


def show_refund(refund: StoredRefund) -> dict[str, Any]:
    """Return a refund as JSON."""
    return {
        "id": refund.id,
        "state": refund.state,
        "token_fp": refund.fingerprint,
        "credits": refund.credits,
        "amount_usd": show_usd(refund.amount),
        "to": checksum_address(refund.payee),
        "from": None if refund.payer is None else checksum_address(refund.payer),
        "reason": refund.reason,
        "proof": refund.proof,
        "asked": show_time(refund.asked_at),
        "booked": None if refund.booked_at is None else show_time(refund.booked_at),
        "ended": None if refund.ended_at is None else show_time(refund.ended_at),
        "tx": None if refund.tx_hash is None else f"0x{refund.tx_hash.hex()}",
    }
