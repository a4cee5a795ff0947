"""The first answer of each tool: nothing waits for our own pacing, and what a tool asks a host fits into a burst.

Upstreams take a usual time to answer, in simulated time.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx
import pytest

from tests.calls.parts import RICH, engine
from tests.served import all_tools
from tests.tools.faulty.cells import settings_of
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import Upstreams
from tests.truth.stage import T1, edits_of, pages_of, simulated_time
from toolserver.registry.registry import Operation, Tier
from toolserver.upstream.host_lane import HostLane

LATENCY_S = 0.15
MOST_S = {Tier.FREE: 1.5, Tier.PREMIUM: 3.0}
ASKED: dict[str, dict[str, Any]] = {"exposure_lookup": {"ip": "1.1.1.1"}}
TOOLS = [each.name for each in all_tools() if each.sources and each.tier in MOST_S]
NOT_MISSING = {"truncated", "default_location", "incomplete_window"}  # incomplete_window: no hour of ours has passed


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    with simulated_time():
        yield
    logging.disable(logging.NOTSET)


class Distant(Upstreams):
    """Upstreams that take LATENCY_S to answer."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock, pages_of("normal"))
        self.state.edits = edits_of("normal")
        self.transport = httpx.MockTransport(self._answer_late)

    async def _answer_late(self, request: httpx.Request) -> httpx.Response:
        await anyio.sleep(LATENCY_S)
        return await self._answer(request)


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what our own pacing did: `waited` for a distance, or `refused`."""
    found: Counter[str] = Counter()
    next_at, refuse = HostLane.next_at, HostLane.refuse

    def watch_wait(lane: HostLane, count: int, now: float) -> float:
        at = next_at(lane, count, now)
        found["waited"] += at > now
        return at

    def watch_refusal(lane: HostLane, *given: Any) -> None:
        found["refused"] += 1
        refuse(lane, *given)

    monkeypatch.setattr(HostLane, "next_at", watch_wait)
    monkeypatch.setattr(HostLane, "refuse", watch_refusal)
    return found


async def call_first(operation: Operation) -> tuple[dict[str, Any], float]:
    """The first answer of a service, and the simulated seconds until it was there."""
    clock = LoopClock(datetime.fromtimestamp(T1, UTC))
    upstreams = Distant(clock)
    async with engine(all_tools(), internet=upstreams, clock=clock, whole=settings_of(keyed=False)) as e:
        outcome = await e.call(operation.name, ASKED.get(operation.name, {}), token=RICH)
        return json.loads(outcome.rendered.payload), clock.passed_s


@pytest.mark.parametrize("name", TOOLS)
async def test_no_first_answer_waits_for_our_own_pacing_and_nothing_is_missing(name, paced):
    operation = all_tools()[name]
    answer, passed_s = await call_first(operation)
    assert paced == Counter(waited=0)
    assert {w["code"] for w in answer.get("warning", ())} <= NOT_MISSING
    assert answer["stale"] is False
    assert passed_s <= MOST_S[operation.tier]


async def test_a_pace_that_makes_a_tool_wait_is_seen(paced, monkeypatch):
    make = HostLane.__init__

    def without_burst(lane: HostLane, *given: Any) -> None:
        make(lane, *given[:-1], 1)

    monkeypatch.setattr(HostLane, "__init__", without_burst)
    _, passed_s = await call_first(all_tools()["humans_in_space"])
    assert paced["waited"] > 0
    assert passed_s > MOST_S[Tier.FREE]


async def test_tools_called_one_after_the_other_do_not_wait_for_each_other(paced):
    clock = LoopClock(datetime.fromtimestamp(T1, UTC))
    async with engine(all_tools(), internet=Distant(clock), clock=clock, whole=settings_of(keyed=False)) as e:
        for name in TOOLS:
            operation, began = e.registry[name], clock.passed_s
            if operation.tier is Tier.FREE:
                await e.call(name, ASKED.get(name, {}))
                assert clock.passed_s - began <= MOST_S[Tier.FREE], name
    assert paced["refused"] == 0
