"""Presents several RPC servers as one chain: believes the first that answers, and for large amounts two that agree."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.money.purchases.credit_sales import ChainServers
from toolserver.money.purchases.matching import ObservedTransaction
from toolserver.money.purchases.units import CHAIN_ID, DECIMALS
from toolserver.settings import PaymentSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

FAILURES, REST_S = 3, 30.0
BATCH = 500  # balances in one request: nodes limit the result (EIP-170: 24,576 bytes)


class ChainDown(ToolserverError):
    """Too few servers gave a usable response."""


class RpcServer(Protocol):
    """One RPC server; `node.ChainNode` is the real one. Every method may raise `NodeDown`."""

    async def facts(self) -> Any: ...
    async def observe(self, tx_hash: bytes) -> ObservedTransaction | None: ...
    async def block_hash(self, number: int) -> bytes | None: ...
    async def balances(self, addresses: Sequence[bytes]) -> list[int]: ...
    async def find_transfer(self, address: bytes, since: int) -> bytes | None: ...
    async def accepts(self, account: bytes, digest: bytes, signature: bytes) -> bool: ...
    async def aclose(self) -> None: ...


class _Guarded:
    """A server with our knowledge of it: whether it is on the right chain, and whether it has been failing."""

    def __init__(self, number: int, make: Callable[[], RpcServer], monotonic: Callable[[], float]) -> None:
        self.name, self._make, self._monotonic = f"rpc {number}", make, monotonic
        self._server: RpcServer | None = None
        self.verified = False
        self._failures, self._rests_until, self._reported = 0, 0.0, False

    @property
    def is_resting(self) -> bool:
        return self._monotonic() < self._rests_until

    async def ask(self, question: Callable[[RpcServer], Awaitable[T]]) -> T:
        """Return the server's response, after it has shown once that it is on the right chain. Raises ChainDown."""
        if self.is_resting:
            raise ChainDown(f"{self.name} rests")
        if self._server is None:
            server = await anyio.to_thread.run_sync(self._make)
            self._server = self._server or server
        try:
            if not self.verified:
                self._verify(await self._server.facts())
            answer = await question(self._server)
        except ToolserverError as error:
            self._failed(str(error))
            raise ChainDown(f"{self.name}: {error}") from None
        if self._reported:
            log.warning("an RPC server is back", extra={"server": self.name})
        self._failures, self._reported = 0, False
        return answer

    async def aclose(self) -> None:
        if self._server is not None:
            await self._server.aclose()

    def _verify(self, facts: Any) -> None:
        if facts.chain_id != CHAIN_ID:
            raise ChainDown(f"chain {facts.chain_id} instead of {CHAIN_ID}")
        if not facts.has_code or facts.decimals != DECIMALS:
            raise ChainDown("the USDC contract is not at its address")
        self.verified = True

    def _failed(self, why: str) -> None:
        """Count a failure. After `FAILURES` or more in a row the server is not asked for `REST_S`."""
        self._failures += 1
        if self._failures >= FAILURES:
            self._rests_until = self._monotonic() + REST_S
        if not self._reported:
            log.warning("an RPC server gives no usable answer", extra={"server": self.name, "reason": why})
            self._reported = True


class RpcPool:
    """All servers of the chain. Each client is made when it is first used."""

    def __init__(self, servers: Sequence[Callable[[], RpcServer]], *, monotonic: Callable[[], float]) -> None:
        self._all = [_Guarded(number, make, monotonic) for number, make in enumerate(servers, 1)]

    def __len__(self) -> int:
        return len(self._all)

    def count_servers(self) -> ChainServers:
        """Return what is known about the servers, without a request."""
        return ChainServers(len(self), sum(one.verified and not one.is_resting for one in self._all))

    async def check_ready(self) -> None:
        """Make sure that at least one server is on the right chain and answers. Raises ChainDown."""
        if not any(one.verified and not one.is_resting for one in self._all):
            await self._first(lambda server: server.facts())

    async def observe(self, tx_hash: bytes, agreeing: int = 1) -> ObservedTransaction | None:
        """Return the transaction as `agreeing` servers see it, or None if fewer see it or two see it differently.

        Raises:
            ChainDown: fewer than `agreeing` servers answered.
        """
        if agreeing == 1:
            return await self._observe_first(tx_hash)
        said = await self._everyone(lambda server: server.observe(tx_hash))
        if len(said) < agreeing:
            raise ChainDown(f"{len(said)} of {agreeing} servers answered")
        seen = [observation for observation in said.values() if observation is not None]
        counts = Counter(observation.agreed_fields for observation in seen)
        if len(counts) > 1:
            log.warning("RPC servers disagree about a transaction", extra={"tx": f"0x{tx_hash.hex()}"})
        if len(counts) != 1 or len(seen) < agreeing:
            return None
        return min(seen, key=lambda s: (s.latest, s.safe, s.finalized))

    async def survey(self, tx_hash: bytes) -> list[ObservedTransaction | None]:
        """Return the transaction as each server that answers sees it, with None for a server that does not see it."""
        return list((await self._everyone(lambda server: server.observe(tx_hash))).values())

    async def is_gone(self, tx_hash: bytes, number: int, block_hash: bytes) -> bool:
        """Return True if the block at `number` is no longer `block_hash` and the transaction is in no other block.

        All servers that have reached that height have to agree, and there must be at least
        two of them, or one if only one is configured. Raises ChainDown if there are fewer.
        """

        async def ask(server: RpcServer) -> bool | None:
            if await server.observe(tx_hash) is not None:
                return False
            hash_now = await server.block_hash(number)
            return None if hash_now is None else hash_now != block_hash

        opinions = [answer for answer in (await self._everyone(ask)).values() if answer is not None]
        if len(opinions) < min(2, len(self)):
            raise ChainDown("too few servers have reached that block")
        return all(opinions)

    async def accepts(self, account: bytes, digest: bytes, signature: bytes, agreeing: int = 1) -> bool:
        """Return True if a contract account accepts a signature as its own (ERC-1271).

        If `agreeing` is more than 1, every server that answers has to say so. Otherwise the first one decides.

        Raises:
            ChainDown: fewer than `agreeing` servers answered.
        """
        if agreeing == 1:
            return await self._first(lambda server: server.accepts(account, digest, signature))
        said = await self._everyone(lambda server: server.accepts(account, digest, signature))
        if len(said) < agreeing:
            raise ChainDown(f"{len(said)} of {agreeing} servers answered")
        return all(said.values())

    async def balances(self, addresses: Sequence[bytes]) -> list[int]:
        """Return the 0.000001 USDC on each of up to `BATCH` addresses. Raises ChainDown."""
        return await self._first(lambda server: server.balances(addresses))

    async def find_transfer(self, address: bytes, since: int) -> bytes | None:
        """Return the hash of the first transaction that paid USDC to an address since a time (epoch seconds), or None
        if none is seen. Raises ChainDown.
        """
        return await self._first(lambda server: server.find_transfer(address, since))

    async def aclose(self) -> None:
        for one in self._all:
            await one.aclose()

    async def _first(self, question: Callable[[RpcServer], Awaitable[T]]) -> T:
        failures = []
        for one in self._all:
            try:
                return await one.ask(question)
            except ChainDown as failure:
                failures.append(str(failure))
        raise ChainDown("; ".join(failures) or "no server is configured")

    async def _observe_first(self, tx_hash: bytes) -> ObservedTransaction | None:
        """Return the transaction from the first server that sees it. One that does not see it may only be behind."""
        answered = False
        for one in self._all:
            try:
                seen = await one.ask(lambda server: server.observe(tx_hash))
            except ChainDown:
                continue
            answered = True
            if seen is not None:
                return seen
        if not answered:
            raise ChainDown("no server answered")
        return None

    async def _everyone(self, question: Callable[[RpcServer], Awaitable[T]]) -> dict[str, T]:
        """Return the response of each server that answers, by the server's name."""
        said: dict[str, T] = {}

        async def ask(one: _Guarded) -> None:
            try:
                said[one.name] = await one.ask(question)
            except ChainDown:
                return

        async with anyio.create_task_group() as tasks:
            for one in self._all:
                tasks.start_soon(ask, one)
        return said


def make_rpc_pool(settings: PaymentSettings, clock: Clock) -> RpcPool:
    """Return the RPC servers of the settings, without a request to any of them."""
    return RpcPool(
        [partial(_make_node, url.get_secret_value()) for url in settings.rpc_urls], monotonic=clock.monotonic
    )


def _make_node(url: str) -> RpcServer:
    """Return a server. This imports web3, which takes long, so it is called only when the server is first used."""
    from toolserver.money.purchases.chain.node import ChainNode

    return ChainNode(url)
