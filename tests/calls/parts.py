"""An engine in memory: a manual clock, an arranged network, and the real reader, cache, answers and pipeline."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from anyio.abc import TaskGroup

from tests.arranged import arrange_service
from tests.internet import Internet
from toolserver.app import Service
from toolserver.calls.pipeline import Outcome, Pipeline
from toolserver.calls.rate_limit import FreeLimits
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.registry.registry import Registry
from toolserver.serving.money import MoneyParts, memory_money
from toolserver.settings import LimitSettings, Settings
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
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
    """A service and the parts of it that a test touches. `internet` is what answers its requests."""

    service: Service
    internet: Any
    clock: Any
    reader: Fetcher
    cache: SourceCache
    answers: ResponseCache
    pipeline: Pipeline
    ledger: Any
    limits: FreeLimits
    registry: Registry
    tasks: TaskGroup

    @classmethod
    def of(cls, service: Service, internet: Any) -> "Engine":
        pipeline = service.pipeline
        return cls(
            service,
            internet,
            service.clock,
            service.fetcher,
            service.cache,
            pipeline.answers,
            pipeline,
            pipeline.ledger,
            pipeline.limits,
            service.registry,
            service.tasks,
        )

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **caller: Any) -> Outcome:
        origin = Caller(**({"client": "192.0.2.1", "limited": False} | caller))
        return await self.pipeline.call(self.registry[name], arguments or {}, origin)


def funded_money(clock: ManualClock) -> MoneyParts:
    """Money in memory: a token of ten credits and one of none."""
    money = memory_money(clock)
    money.ledger.fund(RICH, 10)  # type: ignore[attr-defined]
    money.ledger.fund(POOR, 0)  # type: ignore[attr-defined]
    return money


@asynccontextmanager
async def engine(
    registry: Registry | None = None,
    *,
    internet: Any = None,
    clock: Any = None,
    money: MoneyParts | None = None,
    limits: bool | LimitSettings = False,
    whole: Settings | None = None,
    **settings: Any,
) -> AsyncIterator[Engine]:
    """A running engine; leaving the block ends its background work. `settings` are those of `arrange_service`."""
    clock, internet = clock or ManualClock(START), internet or Internet()
    if whole is None:
        settings |= {"limits": limits if isinstance(limits, LimitSettings) else LimitSettings(enabled=limits)}
    async with arrange_service(
        registry or Registry([]),
        clock,
        transport=internet.transport,
        money=money or funded_money(clock),
        whole=whole,
        **settings,
    ) as service:
        yield Engine.of(service, internet)
