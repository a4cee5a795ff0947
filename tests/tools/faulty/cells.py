"""One cell of the matrix: a tool, a source of it, a kind of fault, with or without a kept answer."""

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from tests.arranged import arrange_settings
from tests.calls.parts import engine
from tests.tools.faulty.skipping import LoopClock
from tests.tools.faulty.upstreams import STEP_S, VIA, Pages, Upstreams
from toolserver.calls.response import RenderedResponse
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation, Registry
from toolserver.settings import KEYS, Settings, SourceSettings, UpstreamSettings
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.source import Source, SourceError

T1 = 1_800_000_000  # a whole step of the world
OWN_NODE = {"BITCOIN_RPC_URL": "https://sim-user:sim-password@bitcoin.example"}  # which has no public form
SIM_KEYS = {name: "sim-key" for name in KEYS if not name.endswith("_URL")} | OWN_NODE


class Fault(NamedTuple):
    """A rule of the simulated world. `since` is the moment it was set, for what stands still."""

    kind: str
    parameters: Mapping[str, Any] = {}
    since: float | None = None


DOWN = Fault("dns")


@dataclass(frozen=True)
class Situation:
    """What holds in all cells of a source: the call, the keys, and who else has to be away for it to be asked."""

    operation: Operation
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    keyed: bool = False
    away: frozenset[str] = frozenset()

    @property
    def sources(self) -> list[Source[Any, Any]]:
        """All requests under the name: one rule strikes them together."""
        return [source for source in self.operation.sources if source.name == self.name]

    @property
    def gap_s(self) -> int:
        """After so long what is kept is stale, and not yet forgotten."""
        ttl = self.operation.ttl(self.operation.arguments(**dict(self.arguments)))
        fresh = max([ttl, self.operation.sla_s or 0, *(source.fresh_s for source in self.sources)])
        return (int(fresh) // STEP_S + 2) * STEP_S

    @property
    def t0(self) -> int:
        return T1 - self.gap_s

    def __str__(self) -> str:
        away = f" while {', '.join(sorted(self.away))} are away" if self.away else ""
        return f"{self.operation.name}: {self.name}{' with keys' if self.keyed else ''}{away}"


@dataclass
class Made:
    """An answer and how it came about."""

    rendered: RenderedResponse
    passed_s: float
    unmatched: list[str]
    answer: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.answer = json.loads(self.rendered.payload)

    @property
    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.answer["_meta"]["sources"]
        return found

    @property
    def used(self) -> dict[str, str]:
        """The sources whose values are in the answer, with a section that each serves."""
        return {entry["name"]: entry["section"] for entry in self.entries if entry["status"] != "error"}


class Memory(NamedTuple):
    """What an engine remembers of its sources."""

    kept: dict[Any, Any]
    from_users: dict[str, dict[Any, Any]]
    good: dict[str, Any]


def remembered(cache: SourceCache) -> Memory:
    tables = {name: dict(table) for name, table in cache._from_users.items()}
    return Memory(dict(cache._answers), tables, deepcopy(cache.outlier_guard._good))


def recall(cache: SourceCache, memory: Memory, sources: Mapping[str, Source[Any, Any]]) -> None:
    cache._answers.update(memory.kept)
    for name, table in memory.from_users.items():
        cache._table(sources[name]).update(table)
    cache.outlier_guard._good = deepcopy(memory.good)


@cache
def settings_of(keyed: bool) -> Settings:
    """The settings of an engine on the simulated world, with or without API keys."""
    sources = SourceSettings(keys=SIM_KEYS if keyed else {})
    return arrange_settings(upstream=UpstreamSettings(via=VIA), sources=sources)


class Bench:
    """Composes answers, each on an engine of its own. What is made without a fault is made once."""

    def __init__(self, registry: Registry) -> None:
        self.registry, self._pages = registry, Pages()
        self._made: dict[Any, tuple[Made, Memory]] = {}

    async def plain(self, at: Situation, t: int, *, without: bool = False, away: frozenset[str] | None = None) -> Made:
        """The answer at t, with or without the source of the situation."""
        gone = (at.away if away is None else away) | ({at.name} if without else frozenset())
        return (await self._once(at, t, gone))[0]

    async def memory(self, at: Situation) -> Memory:
        """What is kept of a good answer at t0."""
        return (await self._once(at, at.t0, at.away))[1]

    async def with_memory(self, at: Situation) -> Made:
        """The answer at t1 when nothing goes wrong and some of t0 is still fresh."""
        return (await self._compose(at, T1, dict.fromkeys(at.away, DOWN), await self.memory(at)))[0]

    async def faulty(self, at: Situation, fault: Fault, memory: Memory | None) -> Made:
        faults = dict.fromkeys(at.away, DOWN) | {at.name: fault}
        return (await self._compose(at, T1, faults, memory))[0]

    async def _once(self, at: Situation, t: int, gone: frozenset[str]) -> tuple[Made, Memory]:
        key = (at.operation.name, at.arguments, at.keyed, t, gone)
        if key not in self._made:
            self._made[key] = await self._compose(at, t, dict.fromkeys(gone, DOWN), None, warm=True)
        return self._made[key]

    async def _compose(
        self, at: Situation, t: int, faults: Mapping[str, Fault], memory: Memory | None, *, warm: bool = False
    ) -> tuple[Made, Memory]:
        clock = LoopClock(datetime.fromtimestamp(t, UTC))
        upstreams = Upstreams(clock, self._pages)
        for name, fault in faults.items():
            upstreams.fault(name, fault.kind, since=fault.since, **fault.parameters)
        async with engine(self.registry, internet=upstreams, clock=clock, whole=settings_of(at.keyed)) as e:
            if memory is not None:
                recall(e.cache, memory, {source.name: source for source in at.operation.sources if source.user_input})
            for source, query in at.operation.warm if warm else ():
                with suppress(SourceError):
                    await e.cache.fresh(source, query, sla_s=0)
            begun = clock.passed_s
            try:
                outcome = await e.call(at.operation.name, dict(at.arguments))
            except InvalidArguments as refusal:
                refused = refusal  # raised below: the service's tasks would wrap it in a group
            else:
                made = Made(outcome.rendered, clock.passed_s - begun, upstreams.unmatched)
                return made, remembered(e.cache)
        raise refused


async def situation(bench: Bench, first: Situation) -> Situation | None:
    """The situation in which the source serves the answer, with as few others away as that takes."""
    met = {}  # the sources that stand before it, by the section they serve
    while (used := (await bench.plain(first, T1, away=frozenset(met))).used) and first.name not in used:
        met |= {name: section for name, section in used.items() if name not in met}
    section = used.get(first.name)
    same = [name for name, served in met.items() if served == section]
    tries = [(), *((name,) for name in met), *combinations(met, 2), same, met]
    for away in map(frozenset, tries):
        if first.name in (await bench.plain(first, T1, away=away)).used:
            return replace(first, away=away)
    return None
