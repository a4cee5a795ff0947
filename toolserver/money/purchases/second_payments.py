"""Sells what a second payment to the address of a purchase buys, as a purchase of its own on the same token.

A purchase credits once, and so does a transaction. A buyer who pays the same address again has
made another purchase: it gets a memo of its own, and its credits go to the token that the
first payment bought. That is done without being asked where the same account paid, and on
request where the account that paid has signed for it. Everything else is a case for a person.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.errors import AlreadyCredited, PaymentRequired
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.credit_price import credits_for
from toolserver.money.purchases.matching import MatchedPayment, ObservedTransaction, Policy, Progress, match_deposit
from toolserver.money.purchases.quotes import SalesCeilings, unavailable
from toolserver.money.purchases.records import (
    NotCreditable,
    Opinion,
    SecondPayment,
    StoredCredit,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.sql.leases import Turn, is_our_turn

log = logging.getLogger(__name__)

LOOK_S = 60.0


class SightedPayment(NamedTuple):
    """A payment as the chain shows it now, and what other servers say of it."""

    seen: ObservedTransaction
    paid: MatchedPayment
    progress: Progress
    opinion: Opinion = "unknown"


class SecondPayments:
    """Credits second payments to the tokens of the first ones."""

    def __init__(
        self, store: SqlPurchaseStore, chain: RpcPool, clock: Clock, policy: Policy, ceilings: SalesCeilings | None
    ) -> None:
        self._store, self._chain, self._clock, self._policy, self._ceilings = store, chain, clock, policy, ceilings

    async def sell(
        self, second: SecondPayment, before: StoredCredit, sighting: SightedPayment, *, is_proven: bool
    ) -> int | None:
        """Return the credits that a settled second payment bought, or None if it is a case for a person.

        It is one unless it `is_proven` to be for this purchase: by its payers, or because they
        paid first. The token must be valid. Raises PaymentPending if it exceeds a ceiling.
        """
        paid, now = sighting.paid, int(self._clock.time() * 1000)
        if is_proven:
            if self._ceilings is not None:
                await self._ceilings.hold_excess(second.tx_hash, second.purchase.id, paid.amount)
            credit = TransferCredit(
                second.purchase.id,
                second.tx_hash,
                before.token,
                sighting.seen,
                paid,
                credits_for(paid.amount),
                self._policy.finality(paid.amount),
                late=False,
                memo_public=False,
                sealed=None,
                sealed_until=None,
                credited_at=now,
                tops_up=True,
                opinion=sighting.opinion,
            )
            try:
                credits = await self._store.credit_second(second, credit)
            except (NotCreditable, PaymentRequired) as refusal:
                if (bought := await self._store.find_second_credit(second)) is not None:  # by a claim at the same time
                    return bought
                log.info("a second payment cannot be credited", extra={"reason": str(refusal)})
            else:
                log.info("second payment credited", extra={"amount": paid.amount, "tx": f"0x{second.tx_hash.hex()}"})
                return credits
        case = UnappliedPayment(second.tx_hash, second.purchase.id, paid.amount, "second_transfer", now)
        await self._store.record_unapplied(case)
        log.warning("a payment bought nothing", extra={"reason": case.reason, "tx": f"0x{second.tx_hash.hex()}"})
        return None

    async def has_paid_first(self, before: StoredCredit, paid: MatchedPayment) -> bool:
        """Return True if the accounts that made a payment are among those that made the first one.

        Raises ChainUnavailable.
        """
        try:
            first = await self._chain.observe(before.tx_hash)
        except ChainDown:
            raise unavailable() from None
        match = None if first is None else match_deposit(first.receipt, before.address)
        return match is not None and paid.payers <= match.payers


def tell_second(second: SecondPayment, credits: int) -> AlreadyCredited:
    """Return the answer to the claim of a second payment that was credited: the purchase was credited before it."""
    return AlreadyCredited(
        "This purchase was already credited. The payment has become a purchase of its own: its credits are on the same "
        "token.",
        new_purchase={"transaction": f"0x{second.tx_hash.hex()}", "credits": credits},
    )


def refuse_second(text: str) -> AlreadyCredited:
    """Return the answer to the claim of a second payment that is a case. `text` is what its payer may sign."""
    return AlreadyCredited(
        "This purchase was already credited, and another account made this payment or the token is no longer valid. To "
        "have it credited to a valid token, send payer_signature: the signature (EIP-191) by the account that paid of "
        f"the text “{text}”, with the memo in place of <nonce>. Or ask the operator, who has the payment on record."
    )


class SecondPaymentWatch:
    """Has the second payments credited that nobody confirms, once a minute, on the instance whose `turn` it is."""

    def __init__(self, credit: Callable[[], Awaitable[None]], clock: Clock, turn: Turn | None = None) -> None:
        self._credit, self._clock, self._turn = credit, clock, turn

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            try:
                if await is_our_turn(self._turn):
                    await self._credit()
            except Exception:
                log.exception("second payments could not be credited")
