"""Defines the stored values of purchases, and the methods that every store of purchases has.

Changes that belong together are one value and one call: a `TransferCredit` mints the credits,
issues the token and marks the purchase, or does none of these. Times are epoch milliseconds,
amounts are in 0.000001 USDC, and `token` is always the hex SHA-256 of the token itself.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.ledger.operations import ISSUED, LedgerOperation, LedgerState, Needs, Revoke
from toolserver.money.purchases.matching import Finality, MatchedPayment, ObservedTransaction

State = Literal["quoted", "credited", "reorged"]
Opinion = Literal["unknown", "agreed", "disputed"]
Reason = Literal["second_transfer", "transaction_used", "below_minimum", "late"]


class NotCreditable(ToolserverError):
    """The purchase was credited before, the transaction was used for another purchase, or nothing is left to credit."""


class AddressInUse(ToolserverError):
    """Another quote has this deposit address already."""


class PurchaseDraft(NamedTuple):
    """A purchase that is about to be quoted. `hd_index` is None when all purchases share one address.

    `credits_per_day` is the cap that the token shall have; None: no cap. `tops_up` is the
    token to which the purchase adds credits; None: it buys a new one.
    """

    memo_hash: bytes
    address: bytes
    hd_index: int | None
    amount: int
    credits: int
    challenge: str | None
    created_at: int
    expires_at: int
    credits_per_day: int | None = None
    tops_up: str | None = None


class Purchase(NamedTuple):
    """A purchase as it is stored. `tops_up` is the token that gets the credits, as long as it is not revoked."""

    id: int
    address: bytes
    hd_index: int | None
    amount: int
    challenge: str | None
    state: State
    created_at: int
    expires_at: int
    tops_up: str | None = None


class TransferCredit(NamedTuple):
    """A payment to credit, on a new token unless that `tops_up` one.

    `sealed` is the encrypted token, kept until `sealed_until` to answer a repeated claim.
    `opinion` is what other RPC servers say of the payment.
    """

    purchase: int
    tx_hash: bytes
    token: str
    seen: ObservedTransaction
    paid: MatchedPayment
    credits: int
    finality: Finality
    late: bool
    memo_public: bool
    sealed: bytes | None
    sealed_until: int | None
    credited_at: int
    tops_up: bool = False
    opinion: Opinion = "unknown"


class SecondPayment(NamedTuple):
    """A transaction that paid the address of a purchase which another one had credited.

    It becomes a purchase of its own, with the memo that `second_memo` makes of these.
    """

    purchase: Purchase
    memo_hash: bytes
    tx_hash: bytes


def second_memo(memo_hash: bytes, tx_hash: bytes) -> str:
    """Return the memo of the purchase that a second payment becomes: the same each time that it is asked for."""
    digest = hashlib.sha256(b"second payment" + memo_hash + tx_hash).hexdigest()
    return f"svc_buy_{digest[:32]}"


def draft_second(memo_hash: bytes, second: SecondPayment, credit: TransferCredit) -> PurchaseDraft:
    """Return the purchase that a second payment becomes: a top-up of the token of the first, credited at once."""
    return PurchaseDraft(
        memo_hash=memo_hash,
        address=second.purchase.address,
        hd_index=None,
        amount=credit.paid.amount,
        credits=credit.credits,
        challenge=None,
        created_at=credit.credited_at,
        expires_at=credit.credited_at,
        tops_up=credit.token,
    )


class StoredCredit(NamedTuple):
    """A payment that was credited. `used` says whether the token has been spent from."""

    tx_hash: bytes
    purchase: int
    address: bytes
    token: str
    block_number: int
    block_hash: bytes
    amount: int
    credits: int
    late: bool
    sealed: bytes | None
    sealed_until: int | None
    missing_since: int | None
    used: bool


class UnappliedPayment(NamedTuple):
    """Money that arrived for a purchase and bought nothing."""

    tx_hash: bytes
    purchase: int
    amount: int
    reason: Reason
    seen_at: int


class BlockUpdate(NamedTuple):
    """The block that holds a credited payment now. `final_at` is None while the chain could still undo it."""

    tx_hash: bytes
    block_number: int
    block_hash: bytes
    block_time: int
    final_at: int | None


class UnagreedTransfer(NamedTuple):
    """A credited transfer that only one RPC server has reported so far. `amount` is in
    0.000001 USDC, times are in epoch milliseconds.
    """

    tx_hash: bytes
    address: bytes
    amount: int
    credited_at: int
    disputed_since: int | None


class CreditReversal(NamedTuple):
    """The credits that a reversal took back, and those that were lost because they had been spent."""

    taken_back: int
    lost: int


PAYMENT_UNDONE = "payment undone on the chain"


@dataclass(slots=True)
class TakeBack(LedgerOperation[int]):
    """Revoke a token and take back up to `credits` of its unspent credits. The result is the number taken back.

    With `spares`, the token stays valid if all of them could be taken back.
    """

    key: str
    credits: int
    reason: str
    spares: bool = False

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: LedgerState) -> int:
        account = books.accounts[books.tokens[self.key].account]
        taken = min(self.credits, account.spendable)
        if not self.spares or taken < self.credits:
            Revoke(self.key, self.reason).on(books)
        if taken > 0:
            books.write("posted", account.id, ISSUED, taken)
        return taken
