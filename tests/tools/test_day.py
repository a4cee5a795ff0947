"""A day of the whole free tier on the simulated world: nothing leaks, and nobody is asked more often than agreed."""

import gc
from collections import defaultdict
from urllib.parse import urlsplit

import anyio
import pytest

from tests.calls.parts import START, engine
from tests.internet import Internet
from tests.size import sized
from tests.tools.paces import list_sent
from toolserver.clock import ManualClock
from toolserver.registry.registry import Registry, Tier
from toolserver.world.model import World
from toolserver.world.providers import load_providers

STEP_S = sized(2 * 3600, fast=2 * 3600, long=600)
HOURS = 24


def free_tools() -> Registry:
    load_providers()
    return Registry(
        o
        for o in Registry.load("tools")
        if o.tier is Tier.FREE and o.reads_only and o.sources and o.name != "internet_pulse"
    )


@pytest.mark.slow("a day of calls, every two hours")
@pytest.mark.timeout(900)
async def test_a_day_of_calls_leaks_nothing_and_keeps_every_budget():
    registry, clock = free_tools(), ManualClock(START)
    internet = Internet(lambda: World(1, clock.time()))
    asked: dict[str, list[float]] = defaultdict(list)
    held: list[int] = []
    async with engine(registry, internet=internet, clock=clock) as e:
        for step in range(HOURS * 3600 // STEP_S):
            begun = clock.time()
            async with anyio.create_task_group() as tasks:
                for operation in registry:
                    tasks.start_soon(e.call, operation.name)
            for request in internet.asked:
                asked[urlsplit(str(request.url)).netloc].append(begun)
            internet.asked.clear()
            clock.advance(max(0.0, STEP_S - (clock.time() - begun)))
            if step % 4 == 3:
                gc.collect()
                held.append(len(gc.get_objects()))
    calls = sum(map(len, asked.values()))
    print(f"{calls} requests to {len(asked)} hosts in {HOURS} h; objects held {held[0]:,} .. {held[-1]:,}")
    assert held[-1] < 1.1 * held[0] + 20_000
    for sent in list_sent(registry, asked):
        assert sent.most_in_a_period <= sent.group.budget, sent
