"""Decides the state of each transfer of USDC to or from an address of ours. Pure: no chain, no clock, no database.

    on the chain, too new ........ pending ──┬── quoted    paid for a quote that nobody has claimed yet
                                             ├── late      the same, after the quote and its grace had ended
                                             ├── short     less than the smallest purchase
                                             ├── foreign   to or from us, and no document of ours names it
                                             ├── swept     moved on by `sweep submit`
                                             └── refunded  paid back to a buyer
    claimed: credited (it bought credits or a call), second (its address was credited by another transaction),
             held (it waits for a person)
    no longer on the chain: undone. If it is mined again, its state is decided anew.

Every transfer has exactly one state. A transfer out of an address counts against it, so the
sums by state add up to the balances of all addresses.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from toolserver.money.purchases.matching import ChainHeads, LoggedTransfer, Policy
from toolserver.money.purchases.units import LEAST

TransferState = Literal[
    "quoted",
    "pending",
    "credited",
    "second",
    "late",
    "short",
    "foreign",
    "held",
    "undone",
    "swept",
    "refunded",
]
STATES: tuple[TransferState, ...] = get_args(TransferState)
DUST = 10_000  # 0.000001 USDC: transfers below one cent are summed, not listed
SETTLED_BLOCKS = 1_800  # an hour of Base, after which blocks count as final where no server says what is


class QuotedAddress(NamedTuple):
    """The purchase that an address was issued for. `ends_at` is the end of its grace in epoch milliseconds."""

    ends_at: int
    is_credited: bool


class SignedPayment(NamedTuple):
    """A payment by signature (x402): whether it is settled, and whether a person has to look at it."""

    is_settled: bool
    is_case: bool


class TransferFacts(NamedTuple):
    """What is known about one transfer.

    `purchase` is that of the payee's address, if it was issued for one; `is_credited`, `is_disputed` and `is_held` say
    what our documents have about the transaction and that address. `paid` is all that the transaction paid there, in
    0.000001 USDC. `block_time` is in epoch milliseconds.
    """

    is_gone: bool = False
    is_final: bool = True
    is_swept: bool = False
    is_refund: bool = False
    is_inward: bool = True
    is_credited: bool = False
    is_disputed: bool = False
    is_held: bool = False
    signed: SignedPayment | None = None
    purchase: QuotedAddress | None = None
    paid: int = LEAST
    block_time: int = 0


def decide_state(facts: TransferFacts) -> TransferState:
    """Return the state of a transfer. What was claimed does not wait for finality: it has waited already."""
    if facts.is_gone:
        return "undone"
    if facts.is_swept or facts.is_refund:
        return "swept" if facts.is_swept else "refunded"
    if facts.is_held or facts.is_disputed:
        return "held"
    if facts.is_credited:
        return "credited"
    if facts.signed is not None and facts.signed.is_settled:
        return "held" if facts.signed.is_case else "credited"
    if facts.signed is not None or not facts.is_final:
        return "pending"
    return _decide_unclaimed(facts)


def _decide_unclaimed(facts: TransferFacts) -> TransferState:
    """Return the state of a final transfer that bought nothing."""
    purchase = facts.purchase
    if purchase is None or not facts.is_inward:
        return "foreign"
    if purchase.is_credited:
        return "second"
    if facts.paid < LEAST:
        return "short"
    return "late" if facts.block_time > purchase.ends_at else "quoted"


def is_final_enough(policy: Policy, heads: ChainHeads, block_number: int, amount: int) -> bool:
    """Return True if a transfer of this amount (0.000001 USDC) needs no further blocks on top of its own."""
    finality = policy.finality(amount)
    if finality == "blocks":
        return heads.latest.number - block_number >= policy.blocks
    return block_number <= (heads.safe if finality == "safe" else find_final(heads))


def find_final(heads: ChainHeads) -> int:
    """Return the height up to which blocks stay; an hour behind the newest if the server does not say it."""
    return max(heads.finalized, heads.latest.number - SETTLED_BLOCKS, 0)


class PlacedTransfer(NamedTuple):
    """A transfer with the name that it keeps when the chain puts it into another block."""

    id: bytes
    logged: LoggedTransfer


def name_transfers(logged: Iterable[LoggedTransfer]) -> list[PlacedTransfer]:
    """Name each transfer by its transaction, payer, payee and amount, and by its number among those that share them.

    The index of a log is no part of the name, because it changes with the block. Two transfers
    with the same terms in one transaction are interchangeable. All of them have to be passed
    at once; a log that is passed twice counts once.
    """
    once = {(each.block_hash, each.log_index): each for each in logged}
    numbers: Counter[bytes] = Counter()
    placed = []
    for each in sorted(once.values(), key=lambda one: (one.block_number, one.log_index)):
        terms = each.tx_hash + each.payer + each.payee + each.amount.to_bytes(32)
        placed.append(PlacedTransfer(hashlib.sha256(terms + numbers[terms].to_bytes(4)).digest()[:16], each))
        numbers[terms] += 1
    return placed


class Dust(NamedTuple):
    """Transfers too small for a row each: numbers, sums in 0.000001 USDC, and the last block that is counted."""

    received: int = 0
    received_amount: int = 0
    sent: int = 0
    sent_amount: int = 0
    zeros: int = 0
    through: int = -1

    def add(self, each: LoggedTransfer, *, outward: bool) -> "Dust":
        """Return the sums with one transfer more. `outward`: it left the address."""
        through = max(self.through, each.block_number)
        if each.amount == 0:
            return self._replace(zeros=self.zeros + 1, through=through)
        if outward:
            return self._replace(sent=self.sent + 1, sent_amount=self.sent_amount + each.amount, through=through)
        received_amount = self.received_amount + each.amount
        return self._replace(received=self.received + 1, received_amount=received_amount, through=through)
