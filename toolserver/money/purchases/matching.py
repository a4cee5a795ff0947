"""Determines what a transaction paid us, from its receipt alone, and how many confirmations
that amount needs. Pure: no chain, no clock, no database.

Only logs count, because the sender of a transaction chooses its recipient and its data. A log
is a transfer of USDC if the USDC contract wrote it, in exactly the form of its Transfer
event: anyone can write the same words from elsewhere.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.units import USDC
from toolserver.settings import PaymentSettings

# The hashes of `Transfer(address,address,uint256)`, `AuthorizationUsed(address,bytes32)`, `transfer(address,uint256)`:
TRANSFER = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
AUTHORIZATION_USED = bytes.fromhex("98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5")
TRANSFER_SELECTOR = bytes.fromhex("a9059cbb")
MOST = 2**53  # 9 billion USDC in one transfer, more than there is on Base: a server that reports it is wrong
SKEW_S = 120  # how far the clocks of the chain and of this machine may differ

Finality = Literal["blocks", "safe", "finalized"]


class Log(NamedTuple):
    """One log entry that a contract wrote."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    log_index: int


class Receipt(NamedTuple):
    """The receipt of a transaction: its status (1: success), its block and what contracts logged in it."""

    tx_hash: bytes
    status: int
    block_number: int
    block_hash: bytes
    logs: tuple[Log, ...]


class Transaction(NamedTuple):
    """A transaction as it was sent: its recipient and its bytes. `to` is None if it created a contract."""

    to: bytes | None
    data: bytes


class UsdcTransfer(NamedTuple):
    """USDC that moved. `amount` is in 0.000001 USDC."""

    payer: bytes
    payee: bytes
    amount: int
    log_index: int


class LoggedTransfer(NamedTuple):
    """USDC that moved, with its place on the chain. `amount` is in 0.000001 USDC; `block_time`
    is in epoch seconds, or None if the server does not say it with its logs.
    """

    tx_hash: bytes
    payer: bytes
    payee: bytes
    amount: int
    block_number: int
    block_hash: bytes
    log_index: int
    block_time: int | None = None


class BlockHead(NamedTuple):
    """A block: its number, its hash, and its time in epoch seconds."""

    number: int
    hash: bytes
    time: int


class ChainHeads(NamedTuple):
    """The newest block, and the heights up to which blocks are safe and finalized; 0 where a server cannot tell."""

    latest: BlockHead
    safe: int
    finalized: int


class AuthorizedTransfer(NamedTuple):
    """USDC that moved by an authorisation (EIP-3009), with the nonce that it used. `amount` is in 0.000001 USDC."""

    payer: bytes
    payee: bytes
    amount: int
    nonce: bytes


class MatchedPayment(NamedTuple):
    """The part of a transaction that counts for a purchase: the sum in 0.000001 USDC, the
    indexes of the logs that make it up, and the accounts that paid it.
    """

    amount: int
    indexes: tuple[int, ...]
    payers: frozenset[bytes]


class Proofs(NamedTuple):
    """The proofs that a transfer is meant for one purchase, where all purchases share one address.

    `signers` are accounts that have signed for this purchase and transaction.
    """

    commitment: bytes
    signers: frozenset[bytes] = frozenset()


def transfers(receipt: Receipt) -> list[UsdcTransfer]:
    """Return every transfer of USDC in a receipt, or an empty list if the transaction failed."""
    if receipt.status != 1:
        return []
    return [_transfer(log) for log in receipt.logs if _is_transfer(log)]


def read_transfer(log: Log) -> UsdcTransfer | None:
    """Return the transfer of USDC that a log reports, or None if it reports none."""
    return _transfer(log) if _is_transfer(log) else None


def match_deposit(receipt: Receipt, address: bytes) -> MatchedPayment | None:
    """Return what a transaction paid to the address of a single purchase, or None if it paid nothing there."""
    return _sum(t for t in transfers(receipt) if t.payee == address)


def match_with_proof(
    receipt: Receipt, transaction: Transaction, address: bytes, proofs: Proofs
) -> MatchedPayment | None:
    """Return what a transaction paid to the shared address for the purchase that the proofs are for, or None.

    A transfer counts when its payer authorised it under the commitment (EIP-3009), when its
    payer signed for the purchase, or when the transaction is a plain `transfer` call that
    carries the commitment after its arguments. The last does not prove which of several
    payers is meant, so it counts only if there is one.
    """
    ours = [t for t in transfers(receipt) if t.payee == address]
    proven = _authorizers(receipt, proofs.commitment) | proofs.signers
    if len({t.payer for t in ours}) == 1 and _carries(transaction, address, proofs.commitment):
        return _sum(ours)
    return _sum(t for t in ours if t.payer in proven)


def says_memo(transaction: Transaction, memo: str) -> bool:
    """Return True if the transaction carries the memo itself, which everybody can then read on the chain."""
    digits = memo.removeprefix("svc_buy_")
    return digits.encode() in transaction.data.lower() or bytes.fromhex(digits) in transaction.data


def is_authorized_transfer(receipt: Receipt, payer: bytes, payee: bytes, amount: int, nonce: bytes) -> bool:
    """Return True if a transaction made this transfer and used its payer's authorisation (EIP-3009) with this nonce."""
    if receipt.status != 1 or payer not in _authorizers(receipt, nonce):
        return False
    return any((t.payer, t.payee, t.amount) == (payer, payee, amount) for t in transfers(receipt))


def authorized_transfers(receipt: Receipt) -> list[AuthorizedTransfer]:
    """Return every transfer whose log directly follows, among those of USDC, the log that an
    authorisation of its payer was used.
    """
    logs = sorted({log.log_index: log for log in receipt.logs if log.address == USDC}.items())
    authorized = []
    for (_, mark), (_, log) in pairwise(logs if receipt.status == 1 else []):
        if _is_mark(mark) and _is_transfer(log) and mark.topics[1] == log.topics[1]:
            moved = _transfer(log)
            authorized.append(AuthorizedTransfer(moved.payer, moved.payee, moved.amount, mark.topics[2]))
    return authorized


def _is_transfer(log: Log) -> bool:
    return (
        log.address == USDC
        and len(log.topics) == 3
        and log.topics[0] == TRANSFER
        and len(log.data) == 32
        and int.from_bytes(log.data, "big") <= MOST
        and _is_address(log.topics[1:])
    )


def _is_address(words: Collection[bytes]) -> bool:
    return all(len(word) == 32 and not any(word[:12]) for word in words)


def _transfer(log: Log) -> UsdcTransfer:
    return UsdcTransfer(log.topics[1][12:], log.topics[2][12:], int.from_bytes(log.data, "big"), log.log_index)


def _sum(transfers: Iterable[UsdcTransfer]) -> MatchedPayment | None:
    counted = {t.log_index: t for t in transfers}  # a log that is listed twice counts once
    if not counted:
        return None
    amount = sum(t.amount for t in counted.values())
    return MatchedPayment(amount, tuple(sorted(counted)), frozenset(t.payer for t in counted.values()))


def _authorizers(receipt: Receipt, nonce: bytes) -> frozenset[bytes]:
    """Return the accounts whose EIP-3009 authorisation with this nonce was used."""
    marks = (log for log in receipt.logs if log.address == USDC and _is_mark(log))
    return frozenset(log.topics[1][12:] for log in marks if log.topics[2] == nonce)


def _is_mark(log: Log) -> bool:
    """Return True if a log of USDC says that an authorisation was used."""
    return len(log.topics) == 3 and log.topics[0] == AUTHORIZATION_USED and _is_address(log.topics[1:2])


def _carries(transaction: Transaction, address: bytes, commitment: bytes) -> bool:
    """Return True if the transaction is `transfer(address, …)` of USDC with the commitment as its last 32 bytes."""
    data = transaction.data
    return (
        transaction.to == USDC
        and data[:4] == TRANSFER_SELECTOR
        and data[4:36] == bytes(12) + address
        and len(data) >= 100
        and data[-32:] == commitment
    )


class ObservedTransaction(NamedTuple):
    """A transaction as one RPC server reports it.

    `canonical` is the hash of the block that the server has at the receipt's height; when the
    receipt names another block, it belongs to a fork. `latest`, `safe` and `finalized` are
    block heights; `block_time` is in epoch seconds.
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


def is_older(block_time: float, quoted_at: float, now: float) -> bool:
    """Return True if a transaction was made before its quote, and so for another buyer. Times are in epoch seconds.

    A quote from the future proves nothing: our clock was ahead when it was made, and has been set back since.
    """
    return block_time < quoted_at - SKEW_S and now >= quoted_at - SKEW_S
