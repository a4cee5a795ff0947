"""Watches credited payments: takes back the credits of those that the chain undoes, and has every one confirmed twice.

`ReorgWatch` looks at each payment until it is final on the chain. `AgreementWatch` asks a
second RPC server about each payment, however small; while servers disagree about one, it is a
case for a person. From the first sign of either trouble on, what the payment bought cannot be
spent; it comes back with the payment.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.money.purchases.chain.rpc_pool import ChainDown, RpcPool
from toolserver.money.purchases.matching import ObservedTransaction, Policy, transfers
from toolserver.money.purchases.records import BlockUpdate, Opinion, StoredCredit, UnagreedTransfer
from toolserver.money.purchases.store import SqlPurchaseStore
from toolserver.sql.leases import Turn, is_our_turn

log = logging.getLogger(__name__)

LOOK_S = 60.0
MISSING_S = 50.0  # how long a payment must have been missing, so that two looks have to agree


class ReorgWatch:
    """Looks at every credit that is not final, once a minute, on the instance whose `turn` it is."""

    def __init__(
        self, store: SqlPurchaseStore, chain: RpcPool, clock: Clock, policy: Policy, turn: Turn | None = None
    ) -> None:
        self._store = store
        self._chain = chain
        self._clock = clock
        self._policy = policy
        self._turn = turn

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                if await is_our_turn(self._turn):
                    await self.look()
            except Exception:
                log.exception("payments could not be watched")
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once at every credit that is not final, and delete encrypted tokens that are out of date."""
        await self._store.forget_old_tokens(self._now())
        for credited in await self._store.list_watched():
            try:
                await self._one(credited)
            except ChainDown as down:
                log.info("a payment could not be looked at", extra={"tx": _shown(credited), "reason": str(down)})

    async def _one(self, credited: StoredCredit) -> None:
        agreeing = 2 if self._policy.needs_agreement(credited.amount) else 1
        seen = await self._chain.observe(credited.tx_hash, agreeing)
        if seen is None or not seen.is_canonical:
            if await self._chain.is_gone(credited.tx_hash, credited.block_number, credited.block_hash):
                await self._missing(credited)
        elif seen.receipt.block_hash == credited.block_hash:
            if seen.finalized >= credited.block_number or credited.missing_since is not None:
                await self._there(credited, seen)
        elif _pays(seen, credited):
            log.warning("a payment moved to another block", extra={"tx": _shown(credited)})
            await self._there(credited, seen)
        elif (agreed := await self._chain.observe(credited.tx_hash, min(2, len(self._chain)))) and not (
            _pays(agreed, credited)
        ):
            await self._missing(credited)

    async def _there(self, credited: StoredCredit, seen: ObservedTransaction) -> None:
        receipt = seen.receipt
        final_at = self._now() if seen.finalized >= receipt.block_number else None
        block_time = seen.block_time * 1000
        update = BlockUpdate(credited.tx_hash, receipt.block_number, receipt.block_hash, block_time, final_at)
        await self._store.record_block(update, self._now())

    async def _missing(self, credited: StoredCredit) -> None:
        """Record that a payment is gone or pays too little. The second time this is seen, take its credits back."""
        now = self._now()
        if credited.missing_since is None:
            log.warning("a payment is gone from the chain", extra={"tx": _shown(credited)})
            await self._store.record_missing(credited.tx_hash, now)
        elif now - credited.missing_since >= MISSING_S * 1000:
            taken, lost = await self._store.reverse_credit(credited.tx_hash, now)
            log.error("a payment was undone", extra={"tx": _shown(credited), "taken_back": taken, "lost": lost})

    def _now(self) -> int:
        return int(self._clock.time() * 1000)


def _pays(seen: ObservedTransaction, credited: StoredCredit) -> bool:
    """Return True if the transaction, whichever block it is in now, pays what was credited."""
    paid = sum(t.amount for t in transfers(seen.receipt) if t.payee == credited.address)
    return paid >= credited.amount


def _shown(credited: StoredCredit) -> str:
    return f"0x{credited.tx_hash.hex()}"


COMPARE_S = 20.0
LAGS_S = 20.0  # a server that still does not know a signed payment after this time contradicts the one that does


class Sightings(NamedTuple):
    """The observations that show a payment on the chain, and the number of servers that do not see it there."""

    shown: list[ObservedTransaction]
    denied: int


def sort_sightings(
    said: Sequence[ObservedTransaction | None], pays: Callable[[ObservedTransaction], bool]
) -> Sightings:
    """Return the servers' observations that show the payment on the chain, not on a fork, and count the others."""
    shown = [seen for seen in said if seen is not None and seen.is_canonical and pays(seen)]
    return Sightings(shown, len(said) - len(shown))


def judge_sightings(said: Sequence[ObservedTransaction | None], address: bytes, amount: int) -> Opinion:
    """Return whether at least two servers report a payment alike, or one that answers does not have it."""

    def pays(seen: ObservedTransaction) -> bool:
        return sum(t.amount for t in transfers(seen.receipt) if t.payee == address) >= amount

    shown, denied = sort_sightings(said, pays)
    if len(shown) >= 2 and len({seen.agreed_fields for seen in shown}) == 1:
        return "agreed"
    return "disputed" if shown and (denied or len(shown) >= 2) else "unknown"


class AgreementWatch:
    """Asks every server about each transfer until a second one has confirmed it. One instance at a time does this."""

    def __init__(self, store: SqlPurchaseStore, chain: RpcPool, clock: Clock, turn: Turn | None = None) -> None:
        self._store, self._chain, self._clock, self._turn = store, chain, clock, turn

    async def run(self) -> None:
        """Watch until cancelled. Return at once with fewer than two servers: there is nothing to compare."""
        while len(self._chain) > 1:
            try:
                if await is_our_turn(self._turn):
                    await self.look()
            except Exception:
                log.exception("payments could not be compared")
            await self._clock.sleep(COMPARE_S)

    async def look(self) -> None:
        """Look once at every transfer that no second server has confirmed."""
        for transfer in await self._store.list_unagreed():
            await self._look_at(transfer)

    async def _look_at(self, transfer: UnagreedTransfer) -> None:
        opinion = judge_sightings(await self._chain.survey(transfer.tx_hash), transfer.address, transfer.amount)
        now = int(self._clock.time() * 1000)
        if opinion == "agreed":
            await self._store.record_agreed(transfer.tx_hash, now)
        elif opinion == "disputed":
            await self._store.record_disputed(transfer.tx_hash, now)
            if transfer.disputed_since is None:
                log.error("RPC servers disagree about a credited payment", extra={"tx": f"0x{transfer.tx_hash.hex()}"})
