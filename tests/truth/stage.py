"""Composes one answer of the real engine on a simulated world in which something is wrong, in simulated time."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

from tests.calls.parts import RICH, engine
from tests.served import all_tools
from tests.tools.faulty.cells import Memory, recall, remembered, settings_of
from tests.tools.faulty.reading import parsed_once
from tests.tools.faulty.skipping import LoopClock
from tests.tools.faulty.upstreams import Pages, Upstreams
from toolserver.context.context import TimeSeriesStore
from toolserver.errors import UpstreamUnavailable
from toolserver.upstream.source import Source
from toolserver.world.model import Edits, World
from toolserver.world.state import scenarios

T1 = 1_800_000_000  # a Friday morning, a whole step of the world
SCENARIOS = ("normal", "quiet", "busy")
WARM_S = 900  # so long before T1 a warm engine has composed the same answer
BEGAN_S = 1800  # so long before T1 the events of a scenario happened: longer than any proof of life may be old


class Fault(NamedTuple):
    """A rule of the simulated world for the sources that match. `since` is how long ago it was set, in seconds."""

    match: str
    kind: str
    parameters: tuple[tuple[str, Any], ...] = ()
    since: float = 0

    def __str__(self) -> str:
        given = "".join(f" {value}" for _, value in self.parameters)
        return f"{self.match} {self.kind}{given}" + (f" for {self.since:g} s" if self.since else "")


class Case(NamedTuple):
    """A tool, its arguments, what is wrong, whether a good answer was composed before, and the scenario."""

    tool: str
    arguments: tuple[tuple[str, Any], ...] = ()
    faults: tuple[Fault, ...] = ()
    warm: bool = False
    scenario: str = "normal"

    def __str__(self) -> str:
        asked = ", ".join(f"{name}={value}" for name, value in self.arguments)
        wrong = " + ".join(map(str, self.faults)) or "nothing wrong"
        return f"{self.tool}({asked}) · {wrong} · {'warm' if self.warm else 'cold'} · {self.scenario}"


@cache
def edits_of(scenario: str) -> Edits:
    """What a scenario pins and injects; its events happened a while before T1."""
    found, edits = scenarios()[scenario], Edits()
    for key, value in found.pins.items():
        edits.pins[key] = [(0.0, 1e12, value)]
    for key, value in found.pins_from_now.items():
        edits.pins[key] = [(T1 - BEGAN_S, 1e12, value)]
    edits.events = [{"at": float(T1 - BEGAN_S - 200)} | event for event in found.events]
    return edits


def world_of(scenario: str, at: float) -> World:
    """The world of a scenario as it is at an instant (epoch seconds)."""
    return World(1, at, edits_of(scenario))


@cache
def pages_of(scenario: str) -> Pages:
    """The pages of a scenario, made once in a process."""
    return Pages()


@dataclass
class Composed:
    """An answer, when it was composed, what it cost and how long it may be kept."""

    answer: dict[str, Any]
    at: float
    charged: int
    lifetime_s: float


NOTHING = Composed({"stale": True, "_meta": {"sources": []}}, T1, 0, 0.0)
"""A premium call that was refused because nobody answered: it asserts nothing, and costs nothing."""


class Stage:
    """Composes answers, each on an engine of its own. The memory of a warm engine is made once."""

    def __init__(self) -> None:
        self._memories: dict[Any, tuple[Memory, TimeSeriesStore]] = {}
        self.asked = 0

    async def compose(self, case: Case) -> Composed:
        """The answer of a case at T1."""
        memory = await self._memory(case) if case.warm else None
        composed, _ = await self._compose(case, T1, memory)
        return composed

    async def _memory(self, case: Case) -> tuple[Memory, TimeSeriesStore]:
        key = case.tool, case.arguments, case.scenario
        if key not in self._memories:
            good = case._replace(faults=(), warm=False)
            self._memories[key] = (await self._compose(good, T1 - WARM_S, None))[1]
        return self._memories[key]

    async def _compose(
        self, case: Case, at: float, memory: tuple[Memory, TimeSeriesStore] | None
    ) -> tuple[Composed, tuple[Memory, TimeSeriesStore]]:
        clock = LoopClock(datetime.fromtimestamp(at, UTC))
        upstreams = Upstreams(clock, pages_of(case.scenario))
        upstreams.state.edits = edits_of(case.scenario)
        for fault in case.faults:
            since = at - fault.since if fault.kind == "frozen" else None
            upstreams.fault(fault.match, fault.kind, since=since, **dict(fault.parameters))
        registry = all_tools()
        async with engine(registry, internet=upstreams, clock=clock, whole=settings_of(keyed=False)) as e:
            if memory is not None:
                sources: Mapping[str, Source[Any, Any]] = {s.name: s for o in registry for s in o.sources}
                recall(e.cache, memory[0], sources)
                e.answers.surroundings.history = deepcopy(memory[1])
            try:
                outcome = await e.call(case.tool, dict(case.arguments), token=RICH)
            except UpstreamUnavailable:
                return NOTHING, (remembered(e.cache), e.answers.surroundings.history)
            self.asked += len(upstreams.asked)
            rendered = outcome.rendered
            composed = Composed(json.loads(rendered.payload), at, outcome.charged, rendered.expires_at - clock.time())
            return composed, (remembered(e.cache), e.answers.surroundings.history)


@contextmanager
def simulated_time() -> Iterator[None]:
    """No simulated time passes while a thread works, and what is read twice is parsed once."""

    async def at_once(function: Any, *args: Any, **how: Any) -> Any:
        return function(*args)

    with (
        mock.patch("anyio.to_thread.run_sync", at_once),
        mock.patch("toolserver.calls.response_cache.LARGE", 1 << 60),
        mock.patch("toolserver.world.answers.COMPRESSED_FROM", 1 << 60),
        mock.patch("toolserver.upstream.fetcher.read_body", parsed_once),
    ):
        yield
