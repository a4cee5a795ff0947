"""Compose example answers: every tool on the simulated world at one fixed instant, with shortened lists."""

import base64
import hashlib
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio

from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import ManualClock
from toolserver.context.service_info import ServiceInfo
from toolserver.core.usage_stats import Usage
from toolserver.errors import NotFound
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.settings import Settings
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.source_errors import SourceExcluded
from toolserver.world.providers import load_providers

if TYPE_CHECKING:
    import httpx

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ITEMS = 2  # of every list


def simulated_transport() -> "httpx.AsyncBaseTransport":
    """Return a transport to the simulated world that needs no socket."""
    import httpx

    from toolserver.world.model import ROUTES, Ask, World

    world = World(1, AT.timestamp())

    async def answer(request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.path.startswith("/probe/"):
            return httpx.Response(200, json={"latency_ms": 20})
        host, _, path = url.path.removeprefix("/u/").partition("/")
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = ROUTES.find(Ask(request.method, host, f"/{path}", url.query.decode(), headers, request.content))
        if found is None:
            return httpx.Response(501)
        reply = found[0].handler(world, found[1])
        return httpx.Response(reply.status, content=reply.body, headers={"content-type": reply.content_type})

    return httpx.MockTransport(answer)


class OneCall:
    """A receipt service with one uncharged call, for the examples of the tools about receipts."""

    async def verify(self, given: str | Mapping[str, Any], body_sha256: str | None = None) -> Mapping[str, Any]:
        raise NotFound("This is an example.")

    async def no_charge(self, day: date) -> Mapping[str, Any]:
        moment, endpoint = f"{day}T07:12:31.402Z", "/api/pro/macro"
        event = {"seq": 0, "ts": moment, "reason": "stale_data", "endpoint": endpoint, "credits": 2}
        root = base64.b64encode(hashlib.sha256(b"an example").digest()).decode()
        return {
            "date": day,
            "count": 1,
            "credits_skipped": 2,
            "by_reason": {"stale_data": 1},
            "by_endpoint": {endpoint: 1},
            "events": [{**event, "receipt_sha256": hashlib.sha256(b"a receipt").hexdigest()}],
            "log": {"origin": "data.example/api/payment/no-charge-log", "size": 1, "root": root, "waiting": 0},
        }

    async def no_charge_days(self) -> list[tuple[str, int]]:
        return []


class _Standing(ManualClock):
    """A clock whose time stands still, so that waiting times do not affect an example."""

    def now(self) -> datetime:
        return AT

    def time(self) -> float:
        return AT.timestamp()


async def example_answers(registry: Registry, settings: Settings) -> dict[str, Any]:
    """Compose the answer of every read-only tool to its default arguments, by tool name.

    Each tool has its own cache, so that no example depends on another.
    """
    load_providers(settings.tools)
    shown = [operation for operation in registry if has_example(operation)]
    with tempfile.TemporaryDirectory() as folder:
        return {operation.name: await _example(operation, settings, Path(folder)) for operation in shown}


async def _example(operation: Operation, settings: Settings, folder: Path) -> dict[str, Any]:
    return shortened(json.loads((await compose_example(operation, settings, folder)).payload))


async def compose_example(
    operation: Operation,
    settings: Settings,
    folder: Path,
    *,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    licence_policy: str = "any",
) -> RenderedResponse:
    """Compose an answer on the simulated world at the fixed instant, with its own cache."""
    clock = _Standing(AT)
    reader = Fetcher(
        clock=clock,
        keys={},
        user_agent="examples",
        via="http://world",
        transport=simulated_transport(),
        licence_policy=licence_policy,
    )
    targets = settings.probes.targets
    host = ServiceInfo(clock, folder, probe_targets=targets, usage=Usage(clock.now), evidence=OneCall())
    async with anyio.create_task_group() as tasks:
        cache = SourceCache(reader, clock=clock, tasks=tasks)
        answers = ResponseCache(cache, clock=clock, tasks=tasks, source="data.example", host=host, hedge_after_s=30)
        for source, query in operation.warm:
            with suppress(SourceExcluded):
                await cache.fresh(source, query, sla_s=0)
        rendered = await answers.compose(operation, operation.arguments(**arguments))
        tasks.cancel_scope.cancel()
    await reader.aclose()
    return rendered


def has_example(operation: Operation) -> bool:
    """Return True if a tool answers without arguments and changes nothing."""
    required = any(field.is_required() for field in operation.arguments.model_fields.values())
    return operation.reads_only and not required and operation.tier in (Tier.FREE, Tier.PREMIUM)


def shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """Shorten an answer to two items per list and one source."""
    cut = {name: _cut(value) for name, value in answer.items() if name != "_meta"}
    meta = dict(answer["_meta"])
    meta["sources"] = meta["sources"][:1]
    meta["attribution"] = meta["attribution"][:ITEMS]
    return {**cut, "_meta": meta}


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(item) for item in value[:ITEMS]]
    if isinstance(value, dict):
        return {name: _cut(inner) for name, inner in value.items()}
    return value
