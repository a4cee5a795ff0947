"""Presents several RPC servers as one chain: believes the first that answers, and for large amounts two that agree.

Two servers that are reached through one proxy count as one, and so do all whose certificates
are from authorities that are not public: there, one program between us and them could answer
in place of both.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from toolserver.clock import Clock
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.errors import ToolserverError
from toolserver.money.purchases.credit_sales import ChainServers
from toolserver.money.purchases.matching import BlockHead, ChainHeads, LoggedTransfer, ObservedTransaction
from toolserver.money.purchases.units import CHAIN_ID, DECIMALS
from toolserver.settings import PaymentSettings

if TYPE_CHECKING:  # it loads web3, which takes long
    from toolserver.money.purchases.chain.node import ChainNode

log = logging.getLogger(__name__)

T = TypeVar("T")

FAILURES, REST_S = 3, 30.0
WATCH_S = 60.0  # how often servers are asked when nobody buys
PRIVATE = "an authority that is not public"
BATCH = 500  # balances in one request: nodes limit the result (EIP-170: 24,576 bytes)


class ChainDown(ToolserverError):
    """Too few servers gave a usable response."""


class _Guarded:
    """A server with our knowledge of it: whether it is on the right chain, and whether it has been failing."""

    def __init__(
        self, number: int, make: Callable[[], "ChainNode"], monotonic: Callable[[], float], proxy: str | None
    ) -> None:
        self.name = f"rpc {number}"
        self._make = make
        self._monotonic = monotonic
        self._proxy = proxy
        self._server: ChainNode | None = None
        self.verified = False
        self._failures, self._rests_until, self.is_failing = 0, 0.0, False

    @property
    def shared_path(self) -> str | None:
        """What all servers with the same value share, so that they count as one; None for one that counts itself."""
        if self._server is not None and self._server.is_privately_certified:
            return PRIVATE
        return self._proxy

    @property
    def is_resting(self) -> bool:
        return self._monotonic() < self._rests_until

    async def ask(self, question: Callable[["ChainNode"], Awaitable[T]]) -> T:
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
        if self.is_failing:
            log.warning("an RPC server is back", extra={"server": self.name})
        self._failures, self.is_failing = 0, False
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
        if not self.is_failing:
            log.warning("an RPC server gives no usable answer", extra={"server": self.name, "reason": why})
            self.is_failing = True


class RpcPool:
    """All servers of the chain. Each client is made when it is first used. `proxies` has the proxy of each, or None."""

    def __init__(
        self,
        servers: Sequence[Callable[[], "ChainNode"]],
        *,
        monotonic: Callable[[], float],
        proxies: Sequence[str | None] = (),
    ) -> None:
        paths = proxies or [None] * len(servers)
        self._all = [
            _Guarded(number, make, monotonic, proxy)
            for number, (make, proxy) in enumerate(zip(servers, paths, strict=True), 1)
        ]

    def __len__(self) -> int:
        """Return how many servers count separately, as far as is known before their certificates are seen."""
        return _count_apart(self._all)

    def count_servers(self) -> ChainServers:
        """Return what is known about the servers, without a request."""
        return ChainServers(
            configured=len(self._all),
            usable=sum(one.verified and not one.is_resting for one in self._all),
            failing=sum(one.is_failing for one in self._all),
        )

    async def check_ready(self) -> None:
        """Make sure that at least one server is on the right chain and answers. Raises ChainDown."""
        if not any(one.verified and not one.is_resting for one in self._all):
            await self._first(lambda server: server.facts())

    async def watch(self) -> None:
        """Look again and again, so that operators learn that the chain is lost, or back, before a buyer does."""
        while True:
            await anyio.sleep(WATCH_S)
            await self.look_again()

    async def look_again(self) -> None:
        """Ask each server that failed, and the others until one answers, so that `count_servers` is of today."""

        async def ask(one: _Guarded) -> bool:
            with suppress(ChainDown):
                await one.ask(lambda server: server.read_heads())
                return True
            return False

        well = [one for one in self._all if not one.is_failing]
        async with anyio.create_task_group() as tasks:
            for one in self._all:
                if one.is_failing:
                    tasks.start_soon(ask, one)
            for one in well:
                if await ask(one):
                    return

    async def observe(self, tx_hash: bytes, agreeing: int = 1) -> ObservedTransaction | None:
        """Return the transaction as `agreeing` servers see it, or None if fewer see it or two see it differently.

        Raises:
            ChainDown: fewer than `agreeing` servers answered.
        """
        if agreeing == 1:
            return await self._observe_first(tx_hash)
        said = await self._everyone(lambda server: server.observe(tx_hash))
        _require_apart(said, agreeing)
        seen = {one: observation for one, observation in said.items() if observation is not None}
        counts = Counter(observation.agreed_fields for observation in seen.values())
        if len(counts) > 1:
            log.warning("RPC servers disagree about a transaction", extra={"tx": f"0x{tx_hash.hex()}"})
        if len(counts) != 1 or _count_apart(seen) < agreeing:
            return None
        return min(seen.values(), key=lambda s: (s.latest, s.safe, s.finalized))

    async def survey(self, tx_hash: bytes) -> list[ObservedTransaction | None]:
        """Return the transaction as each server that answers sees it, with None for a server that does not see it.

        Of servers that count as one, the first that sees it is listed, or else the first.
        """
        said = await self._everyone(lambda server: server.observe(tx_hash))
        apart = [seen for one, seen in said.items() if one.shared_path is None]
        for path in dict.fromkeys(path for one in said if (path := one.shared_path) is not None):
            views = [seen for one, seen in said.items() if one.shared_path == path]
            apart.append(next((seen for seen in views if seen is not None), None))
        return apart

    async def is_gone(self, tx_hash: bytes, number: int, block_hash: bytes) -> bool:
        """Return True if the block at `number` is no longer `block_hash` and the transaction is in no other block.

        All servers that have reached that height have to agree, and there must be at least
        two of them, or one if only one is configured. Raises ChainDown if there are fewer.
        """

        async def ask(server: "ChainNode") -> bool | None:
            if await server.observe(tx_hash) is not None:
                return False
            hash_now = await server.block_hash(number)
            return None if hash_now is None else hash_now != block_hash

        opinions = {one: opinion for one, opinion in (await self._everyone(ask)).items() if opinion is not None}
        if _count_apart(opinions) < min(2, len(self)):
            raise ChainDown("too few servers have reached that block")
        return all(opinions.values())

    async def accepts(self, account: bytes, digest: bytes, signature: bytes, agreeing: int = 1) -> bool:
        """Return True if a contract account accepts a signature as its own (ERC-1271).

        If `agreeing` is more than 1, every server that answers has to say so. Otherwise the first one decides.

        Raises:
            ChainDown: fewer than `agreeing` servers answered.
        """
        if agreeing == 1:
            return await self._first(lambda server: server.accepts(account, digest, signature))
        said = await self._everyone(lambda server: server.accepts(account, digest, signature))
        _require_apart(said, agreeing)
        return all(said.values())

    async def balances(self, addresses: Sequence[bytes]) -> list[int]:
        """Return the 0.000001 USDC on each of up to `BATCH` addresses. Raises ChainDown."""
        return await self._first(lambda server: server.balances(addresses))

    async def balances_at(self, addresses: Sequence[bytes], block: int) -> list[int]:
        """Return the 0.000001 USDC that up to `BATCH` addresses held after a block. Raises ChainDown."""
        return await self._first(lambda server: server.balances_at(addresses, block))

    async def read_heads(self) -> ChainHeads:
        """Return the newest block, and the heights up to which blocks are safe and finalized. Raises ChainDown."""
        return await self._first(lambda server: server.read_heads())

    async def read_block(self, number: int) -> BlockHead | None:
        """Return a block, or None if the first server that answers has none of that number. Raises ChainDown."""
        return await self._first(lambda server: server.read_block(number))

    async def read_transfers(
        self, addresses: Sequence[bytes], first: int, last: int, *, outward: bool
    ) -> list[LoggedTransfer] | None:
        """Return the transfers of USDC to these addresses, or (`outward`) from them, in a range of blocks.

        Return None if the server refuses so many addresses, blocks or results in one request. Raises ChainDown.
        """
        return await self._first(lambda server: server.read_transfers(addresses, first, last, outward=outward))

    async def find_transfer(self, address: bytes, since: int) -> bytes | None:
        """Return the hash of the first transaction that paid USDC to an address since a time
        (epoch seconds), or None if none is seen. Raises ChainDown.
        """
        return await self._first(lambda server: server.find_transfer(address, since))

    async def aclose(self) -> None:
        for one in self._all:
            await one.aclose()

    async def _first(self, question: Callable[["ChainNode"], Awaitable[T]]) -> T:
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

    async def _everyone(self, question: Callable[["ChainNode"], Awaitable[T]]) -> dict[_Guarded, T]:
        """Return the response of each server that answers."""
        said: dict[_Guarded, T] = {}

        async def ask(one: _Guarded) -> None:
            try:
                said[one] = await one.ask(question)
            except ChainDown:
                return

        async with anyio.create_task_group() as tasks:
            for one in self._all:
                tasks.start_soon(ask, one)
        return said


def _count_apart(servers: Iterable[_Guarded]) -> int:
    """Return how many of these servers count separately."""
    paths = [one.shared_path for one in servers]
    return paths.count(None) + len({path for path in paths if path is not None})


def _require_apart(said: Iterable[_Guarded], agreeing: int) -> None:
    """Raise ChainDown if fewer than `agreeing` servers that count separately have answered."""
    if (apart := _count_apart(said)) < agreeing:
        raise ChainDown(f"{apart} of {agreeing} servers answered")


def make_rpc_pool(
    settings: PaymentSettings, clock: Clock, proxies: Proxies = NO_PROXIES, *, patient: bool = False
) -> RpcPool:
    """Return the RPC servers of the settings, without a request to any of them.

    If `patient`, a request may take as long as the search of many blocks does; no buyer may wait for it.
    """
    urls = [url.get_secret_value() for url in settings.rpc_urls]
    found = [proxies.find(url) for url in urls]
    return RpcPool(
        [partial(_make_node, url, proxies, patient) for url in urls],
        monotonic=clock.monotonic,
        proxies=[None if proxy is None else proxy.place for proxy in found],
    )


def _make_node(url: str, proxies: Proxies, patient: bool) -> "ChainNode":
    """Return a server. This imports web3, which takes long, so it is called only when the server is first used."""
    from toolserver.money.purchases.chain.node import PATIENT_S, TIMEOUT_S, ChainNode

    return ChainNode(url, timeout_s=PATIENT_S if patient else TIMEOUT_S, proxies=proxies)
