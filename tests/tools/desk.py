"""A desk that reads the simulated world in memory: sources and tools are tested without engine, clock or network."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel

from tests.pages import PAGES
from toolserver.context.context import Surroundings, TimeSeriesStore, ToolContext
from toolserver.context.provenance import Provenance
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import (
    Get,
    Post,
    Source,
    SourceAnswer,
    SourceChanged,
    SourceDown,
    SourceEmpty,
    SourceError,
    SourceUnusable,
)
from toolserver.world.model import ROUTES, Ask, Reply, World
from toolserver.world.providers import load_providers

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def fetch(world: World, request: Get, *, form: str | None = None) -> Reply:
    """What the simulated upstream answers to a request, or to a fault of that kind."""
    parts = urlsplit(request.url)
    query = parts.query if not request.params else urlencode(request.params)
    body = json.dumps(request.json).encode() if isinstance(request, Post) else b""
    method = "POST" if isinstance(request, Post) else "GET"
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = ROUTES.find(Ask(method, parts.netloc, parts.path, query, headers, body))
    if found is None:
        raise AssertionError(f"not simulated: {method} {request.url}")
    route, ask = found
    return PAGES.answer(route.forms[form] if form else route.handler, world, ask)


def decoded(reply: Reply, request: Get) -> Any:
    """The body as `parse` gets it."""
    if not reply.body:
        return None
    if request.decode == "bytes":
        return reply.body
    text = reply.body.decode("utf-8-sig")
    return json.loads(text) if request.decode == "json" else text


def ask(
    source: Source[Any, Any],
    query: Any = None,
    *,
    world: World | None = None,
    form: str | None = None,
    keys: Mapping[str, str] | None = None,
) -> Any:
    """The parsed answer of a source's twin. Raises what parse raises."""
    plan = source.plan(query, keys or {})
    if plan is None:
        raise SourceUnusable(source.name)
    request = plan if isinstance(plan, Get) else plan[0]
    reply = fetch(world or World(1, NOW), request, form=form)
    if reply.status != 200 and reply.status not in source.also:
        raise SourceDown(word=f"http_{reply.status}")
    return source.parse(decoded(reply, request), query)


@dataclass
class SimDesk:
    """Reads from the world. `down` names sources that do not answer, `forms` the fault a source answers with."""

    world: World
    down: set[str] = field(default_factory=set)
    forms: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    warm: set[tuple[str, Any]] = field(default_factory=set)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    async def fresh(self, source: Source[Any, Any], query: Any, *, sla_s: float, **how: bool) -> SourceAnswer[Any]:
        self.asked.append((source.name, query))
        if source.name in self.down or "*" in self.down:
            raise SourceDown("arranged", word="http_503")
        try:
            value = ask(source, query, world=self.world, form=self.forms.get(source.name), keys=self.keys)
        except SourceError:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
            raise SourceChanged(str(error)) from error
        if hasattr(value, "__len__") and not hasattr(value, "_fields") and len(value) < source.least:
            raise SourceEmpty(source.name)
        newest = source.newest(value) if source.newest else None
        stamp = source.stamp(value) if source.stamp else newest
        if source.proof is not None:
            dated = source.stamp(value) if source.stamp else None
            source.proof.check(value, stamp=dated, newest=newest, now=self.world.time)
        return SourceAnswer(value, self.world.time, newest, stamp, latency_ms=12)

    async def kept(self, source: Source[Any, Any], query: Any) -> SourceAnswer[Any] | None:
        """Only what is listed as `warm` is at hand without being asked for."""
        if (source.name, query) not in self.warm:
            return None
        found = await self.fresh(source, query, sla_s=0)
        return SourceAnswer(found.value, found.fetched_at, found.newest_at, found.dated)


@dataclass
class Composed:
    """What a tool made: its model, the same as JSON, and the account."""

    result: BaseModel
    json: Any
    notes: Provenance
    desk: SimDesk


@cache
def load_all_providers() -> None:
    """Import the simulated providers, once, so that a test that runs alone has the whole world too."""
    load_providers()


async def compose(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    world: World | None = None,
    down: set[str] | None = None,
    forms: dict[str, str] | None = None,
    keys: dict[str, str] | None = None,
    warm: bool = True,
    history: TimeSeriesStore | None = None,
    host: Any = None,
) -> Composed:
    """Run a tool function against the simulated world. Raises SourceError when nothing answers."""
    load_all_providers()
    operation = operation_of(function)
    world = world or World(1, NOW)
    at_hand = {(source.name, query) for source, query in operation.warm} if warm else set()
    desk = SimDesk(world, down or set(), forms or {}, keys or {}, at_hand)
    ctx = ToolContext(
        desk,
        now=lambda: datetime.fromtimestamp(world.now, UTC),
        sla_s=operation.sla_s or 60,
        surroundings=Surroundings(host, history or TimeSeriesStore()),
    )
    checked = operation.arguments.model_validate(dict(arguments or {}))
    values = {name: getattr(checked, name) for name in operation.arguments.model_fields}
    result = await function(ctx, **values)
    again = operation.result.model_validate(result.model_dump())
    return Composed(result, again.model_dump(mode="json"), ctx.notes, desk)
