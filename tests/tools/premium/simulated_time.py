"""A service in simulated time: waits take none of the machine's, and how long a call took is exact."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest import mock

import anyio
import httpx

from tests.calls.parts import RICH, Engine, engine
from tests.served import all_tools
from tests.tools.faulty.skipping import LoopClock
from tests.tools.faulty.upstreams import VIA, Upstreams
from tests.tools.premium.store import PAGES, T
from toolserver.settings import UpstreamSettings


class Exchange(NamedTuple):
    """One request to an upstream: when it left and when its answer was there."""

    url: str
    body: bytes
    began: float
    ended: float


class Timed(Upstreams):
    """The simulated upstreams; each answer takes `latency_s`, those named in `slow` as long as they say."""

    def __init__(self, clock: LoopClock, latency_s: float = 0.0, slow: dict[str, float] | None = None) -> None:
        super().__init__(clock, PAGES)
        self.latency_s, self.slow, self.exchanges = latency_s, slow or {}, list[Exchange]()
        self._loop_clock = clock
        self.transport = httpx.MockTransport(self._late)

    async def _late(self, request: httpx.Request) -> httpx.Response:
        began, url = self._loop_clock.passed_s, str(request.url).partition("/u/")[2]
        await anyio.sleep(next((s for part, s in self.slow.items() if part in url), self.latency_s))
        response = await self._answer(request)
        self.exchanges.append(Exchange(url, request.content, began, self._loop_clock.passed_s))
        return response


class Sale(NamedTuple):
    body: dict[str, Any]
    took_s: float
    charged: int


class Counter(NamedTuple):
    """What a test touches."""

    engine: Engine
    clock: LoopClock
    upstreams: Timed

    async def buy(self, tool: str, **arguments: Any) -> Sale:
        began = self.clock.passed_s
        outcome = await self.engine.call(tool, arguments, token=RICH)
        return Sale(json.loads(outcome.rendered.payload), self.clock.passed_s - began, outcome.charged)


@contextmanager
def no_threads() -> Iterator[None]:
    """No simulated time may pass while a thread works: what is for threads is done at once."""

    async def at_once(function: Any, *args: Any, **how: Any) -> Any:
        return function(*args)

    with mock.patch("anyio.to_thread.run_sync", at_once):
        yield


@asynccontextmanager
async def counter(
    latency_s: float = 0.0, slow: dict[str, float] | None = None, **settings: Any
) -> AsyncIterator[Counter]:
    """An engine on which everything is cold, and a rich caller."""
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Timed(clock, latency_s, slow)
    with no_threads():
        via = UpstreamSettings(via=VIA)
        async with engine(all_tools(), internet=upstreams, clock=clock, upstream=via, **settings) as e:
            e.ledger.fund(RICH, 100_000)
            yield Counter(e, clock, upstreams)
