"""Defines the stored values of payments by x402, and the methods that every store of them has.

Each signed authorisation is stored at most once. A top-up and its credits are one value and one call. Times are epoch
milliseconds, but `valid_before` is in epoch seconds; amounts are in 0.000001 USDC; `payload` is the id of a payment
(SHA-256 of the authorisation and its signature); and `token` is always the hex SHA-256 of the token itself.
"""

from typing import Any, Literal, NamedTuple, Protocol

from toolserver.errors import ToolserverError
from toolserver.money.purchases.deposit import checksum_address
from toolserver.money.purchases.listing import show_time, show_usd
from toolserver.money.purchases.manual_review import ReviewCase

State = Literal["settling", "settled"]
MOST_LISTED = 200  # unsettled payments in one list
FIRST = (-1, b"")  # the position before the first payment of such a list


class NonceUsed(ToolserverError):
    """This authorisation was handed on, credited or used before."""


class BegunPayment(NamedTuple):
    """A payment that is about to be handed to the facilitator.

    `request` names what it pays for. `claim` is the SHA-256 of the Idempotency-Key with which its sender may repeat the
    request. `begun_block` is the height of the chain at this moment, or None if no RPC server returned it.
    """

    payload: bytes
    payer: bytes
    nonce: bytes
    amount: int
    request: str
    valid_before: int
    claim: bytes | None
    begun_at: int
    begun_block: int | None = None


def describe_request(request: str) -> str:
    """Return in words what a payment pays for. `request` is "topup …", or method, path and hash of a call."""
    if request.startswith("topup "):
        return "a top-up"
    return request.rpartition(" ")[0] or "a call"


class StoredPayment(NamedTuple):
    """A payment as it is stored. `used` says whether credits of the token that it was credited to were spent."""

    payload: bytes
    request: str
    state: State
    tx_hash: bytes | None
    claim: bytes | None
    token: str | None
    credits: int | None
    sealed: bytes | None
    sealed_until: int | None
    begun_at: int
    settled_at: int | None
    begun_block: int | None
    answered_at: int | None
    used: bool


class UnsettledPayment(NamedTuple):
    """A payment that was handed on and whose outcome is not known, with the fields that a search on the chain needs."""

    payload: bytes
    payer: bytes
    nonce: bytes
    amount: int
    request: str
    valid_before: int
    begun_at: int
    begun_block: int | None
    tx_hash: bytes | None


def show_pending(payment: UnsettledPayment, now: int) -> dict[str, Any]:
    """Return an unsettled payment as JSON: payer, USD, what it pays for, block, and its age at `now` (epoch ms)."""
    return {
        "payer": checksum_address(payment.payer),
        "amount_usd": show_usd(payment.amount),
        "for": describe_request(payment.request),
        "begun": show_time(payment.begun_at),
        "age_seconds": max(0, now - payment.begun_at) // 1000,
        "block": payment.begun_block,
        "tx": None if payment.tx_hash is None else f"0x{payment.tx_hash.hex()}",
    }


class PaymentBacklog(NamedTuple):
    """The number of unsettled payments, the time at which the oldest was begun, and the number of cases."""

    pending: int = 0
    oldest_at: int | None = None
    in_review: int = 0


class TopupCredit(NamedTuple):
    """A top-up to credit. `sealed` is the encrypted new token, kept until `sealed_until` for repeated requests."""

    payload: bytes
    tx_hash: bytes
    token: str
    credits: int
    sealed: bytes | None
    sealed_until: int | None
    credited_at: int


class PaymentStore(Protocol):
    """Stores signed payments beside the ledger whose tokens they fund. Each call is a durable transaction."""

    async def find_payment(self, payload: bytes) -> StoredPayment | None:
        """Return a payment, or None if it was never handed on or was certainly not made."""
        ...

    async def begin_payment(self, payment: BegunPayment) -> None:
        """Store a payment before it is handed on. Raises NonceUsed if payer and nonce are stored already."""
        ...

    async def drop_payment(self, payload: bytes) -> None:
        """Delete a payment that was certainly not made, so that its sender may try again. Settled payments stay."""
        ...

    async def record_transaction(self, payload: bytes, tx_hash: bytes) -> None:
        """Record the transaction that the facilitator names for an unsettled payment."""
        ...

    async def record_settled(self, payload: bytes, tx_hash: bytes, now: int) -> None:
        """Record that a payment was made. A payment that is settled already stays as it is."""
        ...

    async def credit_topup(self, credit: TopupCredit) -> None:
        """Settle a payment and mint its credits, once per payment, in one transaction.

        Raises:
            NonceUsed: the payment is unknown or was credited before.
            PaymentRequired: the token was revoked. Nothing was written in either case.
        """
        ...

    async def replace_token(self, old: str, credit: TopupCredit) -> None:
        """Move the credits of a token that its buyer never got to a new one. Raises NonceUsed if it was used."""
        ...

    async def record_answered(self, payload: bytes, now: int) -> None:
        """Record that a paid call got its answer. The first such record stays."""
        ...

    async def forget_old_tokens(self, now: int) -> None:
        """Delete every encrypted token whose `sealed_until` has passed."""
        ...

    async def list_unsettled(self, before: int, after: tuple[int, bytes] = FIRST) -> list[UnsettledPayment]:
        """Return at most MOST_LISTED unsettled payments that were begun before a time (epoch ms), oldest first.

        `after` is the pair of `begun_at` and `payload` of the previous page's last payment.
        """
        ...

    async def list_payment_cases(self, now: int) -> list[ReviewCase]:
        """Return the cases for a person, oldest first: see `toolserver.money.x402.store_rules.judge_case`."""
        ...

    async def measure_backlog(self, now: int) -> PaymentBacklog:
        """Count the payments that are unsettled, and those that are cases."""
        ...
