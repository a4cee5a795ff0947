"""Has every credited transfer confirmed by a second RPC server, however small its amount. If servers keep disagreeing
about a transfer, it becomes a case for a person.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from toolserver.clock import Clock
from toolserver.money.purchases.matching import transfers
from toolserver.money.purchases.policy import ObservedTransaction
from toolserver.money.purchases.rpc_pool import RpcPool
from toolserver.sql.leased_task import Turn, is_our_turn

log = logging.getLogger(__name__)

LOOK_S = 20.0
LAGS_S = 20.0  # a server that still does not know a transaction after this time contradicts the one that does


class UnagreedTransfer(NamedTuple):
    """A credited transfer that only one RPC server has reported so far. `amount` is in 0.000001 USDC, times are in
    epoch milliseconds.
    """

    tx_hash: bytes
    address: bytes
    amount: int
    credited_at: int
    disputed_since: int | None


class AgreementStore(Protocol):
    """Records what a second server says about credited transfers."""

    async def list_unagreed(self) -> list[UnagreedTransfer]:
        """Return the credited transfers that no second server has confirmed."""
        ...

    async def record_agreed(self, tx_hash: bytes, now: int) -> None:
        """Record that a second server reports the same, so that the transfer is no longer a case."""
        ...

    async def record_disputed(self, tx_hash: bytes, now: int) -> None:
        """Record that servers disagree. The first such record stays."""
        ...


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


class AgreementWatch:
    """Asks every server about each transfer until a second one has confirmed it. One instance at a time does this."""

    def __init__(self, store: AgreementStore, chain: RpcPool, clock: Clock, turn: Turn | None = None) -> None:
        self._store, self._chain, self._clock, self._turn = store, chain, clock, turn

    async def run(self) -> None:
        """Watch until cancelled. Return at once with fewer than two servers: there is nothing to compare."""
        while len(self._chain) > 1:
            try:
                if await is_our_turn(self._turn):
                    await self.look()
            except Exception:
                log.exception("payments could not be compared")
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once at every transfer that no second server has confirmed."""
        for transfer in await self._store.list_unagreed():
            await self._look_at(transfer)

    async def _look_at(self, transfer: UnagreedTransfer) -> None:
        def pays(seen: ObservedTransaction) -> bool:
            return sum(t.amount for t in transfers(seen.receipt) if t.payee == transfer.address) >= transfer.amount

        shown, denied = sort_sightings(await self._chain.survey(transfer.tx_hash), pays)
        now = int(self._clock.time() * 1000)
        if len(shown) >= 2 and len({seen.agreed_fields for seen in shown}) == 1:
            await self._store.record_agreed(transfer.tx_hash, now)
        elif shown and denied and transfer.disputed_since is None and now - transfer.credited_at >= LAGS_S * 1000:
            await self._store.record_disputed(transfer.tx_hash, now)
            log.error("RPC servers disagree about a credited payment", extra={"tx": f"0x{transfer.tx_hash.hex()}"})
