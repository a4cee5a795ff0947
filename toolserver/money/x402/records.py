"""Defines the stored values of payments by x402, and the methods that every store of them has.

Each signed authorisation is stored at most once. A top-up and its credits are one value and
one call. Times are epoch milliseconds, but `valid_before` is in epoch seconds; amounts are in
0.000001 USDC; `payload` is the id of a payment (SHA-256 of the authorisation and its
signature); and `token` is always the hex SHA-256 of the token itself.
"""

import hashlib
import hmac
from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.ledger.operations import Mint
from toolserver.money.ledger.state import new_ref
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.listing import CaseKind, ReviewCase, show_time, show_usd
from toolserver.money.purchases.matching import Receipt, authorized_transfers
from toolserver.money.purchases.records import TakeBack
from toolserver.money.purchases.units import NETWORK

State = Literal["settling", "settled"]
MOST_LISTED = 200  # unsettled payments in one list
FIRST = (-1, b"")  # the position before the first payment of such a list


class NonceUsed(ToolserverError):
    """This authorisation was handed on, credited or used before."""


class BegunPayment(NamedTuple):
    """A payment that is about to be handed to the facilitator.

    `request` names what it pays for. `claim` is the SHA-256 of the Idempotency-Key with which
    its sender may repeat the request. `begun_block` is the height of the chain at this
    moment, or None if no RPC server returned it.
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


class WatchedPayment(NamedTuple):
    """A settled payment that is not final. `amount` is in 0.000001 USDC, times are in epoch
    milliseconds, `tx_hash` is the transaction that has it now.
    """

    payload: bytes
    payer: bytes
    nonce: bytes
    amount: int
    request: str
    tx_hash: bytes
    token: str | None
    settled_at: int
    agreed_at: int | None
    disputed_since: int | None
    missing_since: int | None


class PaymentPlace(NamedTuple):
    """The block of a payment on the chain. `agreed_at` is None until servers agree, `final_at` until it is final."""

    payload: bytes
    block_number: int
    block_hash: bytes
    agreed_at: int | None
    final_at: int | None


OWED_MS = 600_000  # how long after its settlement a payment may have neither credits nor an answer
PATIENCE_MS = 3_600_000  # how long a payment may be unsettled before a person looks at it
TOKEN_REPLACED = "replaced for the account that paid"


def judge_case(stored: StoredPayment, now: int) -> CaseKind | None:
    """Return why a person has to look at a payment at `now` (epoch milliseconds), or None if nobody has to.

    `unsettled`: for an hour it has not been known whether it was made. `uncredited`: a top-up
    was paid, but its sender never came back for the credits, or the token was revoked.
    `unanswered`: a call was paid and got no answer.
    """
    if stored.settled_at is None:
        return "unsettled" if now - stored.begun_at >= PATIENCE_MS else None
    if now - stored.settled_at < OWED_MS:
        return None
    if stored.request.startswith("topup "):
        return "uncredited" if stored.token is None else None
    return "unanswered" if stored.answered_at is None else None


def show_payment_case(stored: StoredPayment, payer: bytes, amount: int, now: int) -> ReviewCase | None:
    """Return a payment as a case for a person, or None if it is none. `amount` is in 0.000001 USDC."""
    kind = judge_case(stored, now)
    if kind is None:
        return None
    at = stored.begun_at if stored.settled_at is None else stored.settled_at
    return ReviewCase(kind, stored.tx_hash, payer, amount, describe_request(stored.request), None, at)


def mint_topup(credit: TopupCredit, payer: bytes, nonce: bytes, credited_to: str | None) -> Mint:
    """Return the operation that mints a top-up's credits, whose cause lets an authorisation mint once.

    Raises NonceUsed if it was credited to a token already.
    """
    if credited_to is not None:
        raise NonceUsed("credited before")
    return Mint(credit.token, credit.credits, f"x402:{NETWORK}:0x{payer.hex()}:0x{nonce.hex()}", new_ref())


def withdraw_unused(old: str, stored: StoredPayment | None, credits: int) -> TakeBack:
    """Return the operation that takes back the credits of a token that its buyer never used.

    Raises NonceUsed if it was used, or if it is not the payment's token.
    """
    if stored is None or (stored.token, stored.credits) != (old, credits) or stored.used:
        raise NonceUsed("used before")
    return TakeBack(old, credits, TOKEN_REPLACED)


def mint_replacement(old: str, credit: TopupCredit, taken: int) -> Mint:
    """Return the operation that mints the same credits on the new token.

    Raises NonceUsed if some could not be taken back.
    """
    if taken != credit.credits:
        raise NonceUsed("used before")
    return Mint(credit.token, credit.credits, f"x402:replaces:{old}", new_ref())


SECRET_LENGTH = 16  # characters that an Idempotency-Key needs to be hard to guess


def hash_key(key: str | None, *, least: int = 1) -> bytes | None:
    """Return the SHA-256 of a key, or None if there is no key or it has fewer than `least` characters."""
    return hashlib.sha256(key.encode()).digest() if key and len(key) >= least else None


def is_same_key(claim: bytes | None, key: str | None, *, least: int = 1) -> bool:
    """Return True if `claim` is the hash of this key."""
    hashed = hash_key(key, least=least)
    return claim is not None and hashed is not None and hmac.compare_digest(claim, hashed)


TOPUP, NEW = "topup ", "new"  # the parts of a top-up's stored `request`


def owner_of(request: str) -> str | None:
    """Return the SHA-256 (hex) of the token that a top-up is for, or None if it is for a new token or not a top-up."""
    whose = request.removeprefix(TOPUP)
    return None if whose in (request, NEW) else whose


class ChainTopup(NamedTuple):
    """A top-up as the chain has it: the account that signed it, the nonce, and the amount in 0.000001 USDC."""

    payer: bytes
    nonce: bytes
    amount: int


def find_topups(receipt: Receipt, payee: bytes, prices: Collection[int]) -> list[ChainTopup]:
    """Return the top-ups that a transaction settled. `prices` are those of single calls, in 0.000001 USDC."""
    paid = [one for one in authorized_transfers(receipt) if one.payee == payee]
    return [ChainTopup(one.payer, one.nonce, one.amount) for one in paid if is_topup(one.amount, prices)]


def is_topup(amount: int, prices: Collection[int]) -> bool:
    """Return True if this amount (0.000001 USDC) can only have paid for a top-up."""
    return amount >= ATOMIC and amount not in prices


def recovered_id(payer: bytes, nonce: bytes) -> bytes:
    """Return the id under which a recovered payment is stored. Its signature, which is part of other ids, is lost."""
    return hashlib.sha256(b"recovered x402 payment" + payer + nonce).digest()


def begin_recovered(topup: ChainTopup, now: int) -> BegunPayment:
    """Return a top-up as a payment for a new token, handed on at `now` (epoch milliseconds)."""
    id = recovered_id(topup.payer, topup.nonce)
    return BegunPayment(id, topup.payer, topup.nonce, topup.amount, f"{TOPUP}{NEW}", 0, None, now)
