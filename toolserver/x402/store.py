"""What is kept about payments by x402: the values, and what every store of them can do.

Each signed authorisation is stored at most once. A top-up and its credits are one value and one call. Times are
milliseconds since 1970, amounts are in 0.000001 USDC, `payload` is the id of a payment (SHA-256 of the authorisation
and its signature), and a token is always the hex SHA-256 of the token itself.
"""

from typing import Any, Literal, NamedTuple, Protocol

from toolserver.errors import ToolserverError
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.listing import show_time, show_usd
from toolserver.purchases.manual_review import ReviewCase

State = Literal["settling", "settled"]
MOST_LISTED = 200  # unsettled payments in one list
FIRST = (-1, b"")  # the place before the first payment of such a list


class NonceUsed(ToolserverError):
    """This authorisation was handed on, credited or spent before."""


class BegunPayment(NamedTuple):
    """A payment that is about to be handed to the facilitator.

    `request` names what it pays for. `claim` is the SHA-256 of the Idempotency-Key by which its sender may ask again.
    `begun_block` is the height of the chain at this moment; None when no RPC server says it.
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
    """What a payment pays for, in words: `request` is "topup …", or method, path and hash of a call."""
    if request.startswith("topup "):
        return "a top-up"
    return request.rpartition(" ")[0] or "a call"


class StoredPayment(NamedTuple):
    """A payment as it is stored. `used` says whether the token that it was credited to has been spent from."""

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
    """A payment that was handed on and whose end is not known, with what the chain can be asked about it."""

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
    """A payment that is not settled, as JSON: the payer, the amount in USD, what it pays for, its block and its age."""
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
    """How many payments are not settled, since when the oldest of them, and how many a person has to look at."""

    pending: int = 0
    oldest_at: int | None = None
    in_review: int = 0


class TopupCredit(NamedTuple):
    """A top-up to credit. `sealed` is the encrypted new token, kept until `sealed_until` if its buyer may ask again."""

    payload: bytes
    tx_hash: bytes
    token: str
    credits: int
    sealed: bytes | None
    sealed_until: int | None
    credited_at: int


class PaymentStore(Protocol):
    """Keeps signed payments beside the ledger whose tokens they fund. Each call is one durable transaction."""

    async def find_payment(self, payload: bytes) -> StoredPayment | None:
        """A payment; None when it was never handed on, or certainly not made."""
        ...

    async def begin_payment(self, payment: BegunPayment) -> None:
        """Keep a payment before it is handed on. Raises NonceUsed when payer and nonce are known already."""
        ...

    async def drop_payment(self, payload: bytes) -> None:
        """Forget a payment that was certainly not made, so that its sender may try again. SettleAnswer ones stay."""
        ...

    async def record_transaction(self, payload: bytes, tx_hash: bytes) -> None:
        """Note in which transaction an unsettled payment is said to be."""
        ...

    async def record_settled(self, payload: bytes, tx_hash: bytes, now: int) -> None:
        """Note that a payment was made. What is settled already stays as it is."""
        ...

    async def credit_topup(self, given: TopupCredit) -> None:
        """Settle a payment and mint its credits, once for each payment.

        Raises:
            NonceUsed: the payment is unknown or was credited before.
            PaymentRequired: the token was revoked. Nothing was written in either case.
        """
        ...

    async def replace_token(self, old: str, given: TopupCredit) -> None:
        """Move the credits of a token that its buyer never got to a new one. Raises NonceUsed once it was used."""
        ...

    async def record_answered(self, payload: bytes, now: int) -> None:
        """Note that the answer to a paid call was kept for its sender. The first such note stays."""
        ...

    async def forget_old_tokens(self, now: int) -> None:
        """Delete every encrypted token whose time is over."""
        ...

    async def list_unsettled(self, before: int, after: tuple[int, bytes] = FIRST) -> list[UnsettledPayment]:
        """At most MOST_LISTED payments that were handed on before a moment and are not settled, oldest first.

        `after` is `begun_at` and `payload` of the last payment of the page before, so that all are seen in the end.
        """
        ...

    async def list_payment_cases(self, now: int) -> list[ReviewCase]:
        """What a person has to look at, oldest first: see `toolserver.x402.store_rules.PATIENCE_MS`."""
        ...

    async def measure_backlog(self, now: int) -> PaymentBacklog:
        """How many payments are open, and how many are cases."""
        ...
