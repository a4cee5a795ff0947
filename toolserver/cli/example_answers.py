"""Compose answers on the simulated world at one instant: examples, and what each licence policy leaves for sale."""

import base64
import hashlib
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import httpx

from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ResponseCache
from toolserver.clock import ManualClock
from toolserver.context.service_info import ServiceInfo
from toolserver.core.metrics import Usage
from toolserver.errors import NotFound
from toolserver.registry.licence_table import POLICIES
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.settings import Settings
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender
from toolserver.upstream.source_errors import SourceExcluded
from toolserver.world.model import ROUTES, Ask, World
from toolserver.world.providers import load_providers

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ITEMS = 2  # of every list
BARRED = ("licence_excluded", "insufficient_sample")  # warnings of a section that the policy withholds
WHOLE = "the whole answer"


def simulated_transport() -> httpx.AsyncBaseTransport:
    """Return a transport to the simulated world that needs no socket."""
    world = World(1, AT.timestamp())

    async def answer(request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.path.startswith("/probe/"):
            return httpx.Response(200, json={"latency_ms": 20})
        host, _, path = url.path.removeprefix("/u/").partition("/")
        headers = {name.lower(): value for name, value in request.headers.items()}
        match = ROUTES.find(Ask(request.method, host, f"/{path}", url.query.decode(), headers, request.content))
        if match is None:
            return httpx.Response(501)
        route, matched = match
        reply = route.handler(world, matched)
        return httpx.Response(reply.status, content=reply.body, headers={"content-type": reply.content_type})

    return httpx.MockTransport(answer)


class OneCall:
    """A receipt service with one uncharged call, for the examples of the tools about receipts."""

    async def verify(self, receipt: str | Mapping[str, Any], body_sha256: str | None = None) -> Mapping[str, Any]:
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
    sender = HttpSender(
        clock=clock, keys={}, user_agent="examples", via="http://world", transport=simulated_transport()
    )
    reader = Fetcher(sender, clock=clock, keys={}, licence_policy=licence_policy)
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


async def compose_licence_table(registry: Registry, settings: Settings) -> dict[str, dict[str, list[str]]]:
    """Compose every premium answer on the simulated world under every policy. Returns the sections lost, by policy."""
    load_providers(settings.tools)
    sold = [operation for operation in registry if operation.tier is Tier.PREMIUM]
    with tempfile.TemporaryDirectory() as folder:
        return {
            policy: {one.name: await _find_lost(one, settings, Path(folder), policy) for one in sold}
            for policy in POLICIES
        }


async def _find_lost(operation: Operation, settings: Settings, folder: Path, policy: str) -> list[str]:
    if policy == "any":
        return []
    answer = await compose_example(operation, settings, folder, arguments=_longest(operation), licence_policy=policy)
    payload = json.loads(answer.payload)
    if answer.nothing:
        return [WHOLE]
    warned = [warning["section"] for warning in payload.get("warning", ()) if warning["code"] in BARRED]
    return [section for section in dict.fromkeys(warned) if _is_gone(payload, section)]


def _longest(operation: Operation) -> dict[str, Any]:
    """Return the arguments that add a series, if the tool has any."""
    history = operation.input_schema["properties"].get("history", {}).get("enum")
    return {"history": history[0]} if history else {}


def _is_gone(payload: Any, section: str) -> bool:
    """Return True if the section at this path of a payload is null or absent."""
    for name in section.split("."):
        if not isinstance(payload, dict) or name not in payload:
            return True
        payload = payload[name]
    return payload is None or payload == []
