"""Decides what every store has to decide alike. Pure: a store loads the facts, calls this, and writes the decision."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.money.ledger.operations import ISSUED, LedgerOperation, LedgerState, Mint, Needs, Revoke
from toolserver.money.ledger.protocol import new_ref
from toolserver.money.purchases.matching import UsdcTransfer, transfers
from toolserver.money.purchases.store import NotCreditable, State, TransferCredit, UnappliedPayment
from toolserver.money.purchases.units import CHAIN_ID

PAYMENT_UNDONE = "payment undone on the chain"


class CreditFacts(NamedTuple):
    """The facts, read within the store's transaction, about a purchase that is to be credited.

    `reversals` counts earlier payments of this purchase that were undone, and `lost` their credits that had been spent.
    `owners` maps deposit addresses to their purchases: at least the addresses that the transaction paid.
    """

    state: State
    address: bytes
    transaction_used: bool
    reversals: int
    lost: int
    owners: Mapping[bytes, int]


class CreditDecision(NamedTuple):
    """The rows to write: the credits of the purchase, the ledger's operation, and money that bought nothing."""

    credits: int
    mint: Mint
    unapplied: list[UnappliedPayment]


def decide_credit(credit: TransferCredit, facts: CreditFacts) -> CreditDecision:
    """Decide how many credits a payment buys, less those that were spent before an earlier payment was undone.

    Raises:
        NotCreditable: the purchase or the transaction was credited before, or nothing is left to credit.
    """
    credits = credit.credits - facts.lost
    if facts.state == "credited" or facts.transaction_used or credits < 1:
        raise NotCreditable("credited before")
    cause = f"eip155:{CHAIN_ID}:0x{credit.tx_hash.hex()}:{facts.reversals}"
    return CreditDecision(credits, Mint(credit.token, credits, cause, new_ref()), _find_unapplied(credit, facts))


def other_transfers(credit: TransferCredit) -> Iterable[UsdcTransfer]:
    """Return the USDC transfers of the same transaction that were not counted for this purchase."""
    transferred = transfers(credit.seen.receipt)
    return [t for t in transferred if t.amount and t.log_index not in credit.paid.indexes]


def _find_unapplied(credit: TransferCredit, facts: CreditFacts) -> list[UnappliedPayment]:
    """Return what else the same transaction paid to us. A transaction buys once, so this money buys nothing."""
    sums: Counter[int] = Counter()
    for transfer in other_transfers(credit):
        owner = credit.purchase if transfer.payee == facts.address else facts.owners.get(transfer.payee)
        if owner is not None:
            sums[owner] += transfer.amount
    return [
        UnappliedPayment(credit.tx_hash, purchase, amount, "transaction_used", credit.credited_at)
        for purchase, amount in sums.items()
    ]


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
