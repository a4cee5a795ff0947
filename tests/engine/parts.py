"""An engine in memory: a manual clock, an arranged network, and the real reader, cache, answers and pipeline."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from tests.internet import Internet
from toolserver.access import Caller
from toolserver.answers import Answers
from toolserver.billing.ledger import MemoryLedger
from toolserver.clock import ManualClock
from toolserver.host import Host
from toolserver.idempotency import MemoryIdempotency
from toolserver.limits import FreeLimits
from toolserver.metrics import Metrics
from toolserver.pipeline import Outcome, Pipeline
from toolserver.registry import Registry
from toolserver.upstream.cache import BodyStore, SourceCache
from toolserver.upstream.reader import Reader
from toolserver.upstream.source import Get, HostGroup, Licence, Source

START = datetime(2027, 1, 15, 8, tzinfo=UTC)
FREELY = HostGroup("test", 100, 0, 100_000, 60)
RICH = "svc_live_" + "a" * 64
POOR = "svc_live_" + "b" * 64


class Number(NamedTuple):
    """What the test sources say."""

    value: float
    at: datetime | None = None


def number_source(name: str = "Test.number", **more: Any) -> Source[Any, Number]:
    """A source at https://test.example/<name> whose body is {"value": …}."""

    def request(query: Any, keys: Mapping[str, str]) -> Get:
        return Get(f"https://test.example/{name}" + (f"/{query}" if query else ""))

    def parse(body: Any, query: Any) -> Number:
        stamp = body.get("at")
        return Number(float(body["value"]), datetime.fromtimestamp(stamp, UTC) if stamp else None)

    settings: dict[str, Any] = {"fresh_s": 30, "keep_s": 3600, "timeout_s": 2, "hosts": FREELY}
    return Source(name, request, parse, licence=Licence("yes", "Test"), **(settings | more))


@dataclass
class Engine:
    """The parts a test touches."""

    internet: Internet
    clock: ManualClock
    reader: Reader
    cache: SourceCache
    answers: Answers
    pipeline: Pipeline
    ledger: MemoryLedger
    limits: FreeLimits
    registry: Registry
    tasks: TaskGroup

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **caller: Any) -> Outcome:
        origin = Caller(**({"client": "192.0.2.1", "limited": False} | caller))
        return await self.pipeline.call(self.registry[name], arguments or {}, origin)


@asynccontextmanager
async def engine(
    registry: Registry | None = None,
    *,
    internet: Internet | None = None,
    clock: ManualClock | None = None,
    store: BodyStore | None = None,
    limits: bool = False,
    **reader: Any,
) -> AsyncIterator[Engine]:
    """A running engine; leaving the block ends its background work."""
    clock = clock or ManualClock(START)
    internet = internet or Internet()
    asking = Reader(clock=clock, keys=reader.pop("keys", {}), user_agent="test", transport=internet.transport, **reader)
    ledger = MemoryLedger()
    ledger.fund(RICH, 10)
    ledger.fund(POOR, 0)
    free = FreeLimits(daily=100_000, spacing_s=30, monotonic=clock.monotonic, enabled=limits)
    async with anyio.create_task_group() as tasks:
        cache = SourceCache(asking, clock=clock, tasks=tasks, store=store)
        answers = Answers(cache, clock=clock, tasks=tasks, source="test.example", host=Host(clock, Path(".")))
        pipeline = Pipeline(
            answers, ledger=ledger, limits=free, idempotency=MemoryIdempotency(clock), metrics=Metrics()
        )
        yield Engine(internet, clock, asking, cache, answers, pipeline, ledger, free, registry or Registry([]), tasks)
        tasks.cancel_scope.cancel()
    await asking.aclose()
