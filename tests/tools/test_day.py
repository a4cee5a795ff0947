"""A day of the whole free tier on the simulated world: nothing leaks, and nobody is asked more often than agreed."""

import gc
from collections import defaultdict
from datetime import UTC, datetime
from urllib.parse import urlsplit

import anyio
import pytest

from tests.calls.parts import START, engine
from tests.internet import Internet
from tests.size import sized
from toolserver.clock import ManualClock
from toolserver.registry.registry import Registry, Tier
from toolserver.upstream.source import HostGroup
from toolserver.world.model import World
from toolserver.world.providers import load_providers

STEP_S = sized(3600, fast=3600, long=600)
HOURS = 24


def free_tools() -> Registry:
    load_providers()
    return Registry(
        o
        for o in Registry.load("tools")
        if o.tier is Tier.FREE and o.reads_only and o.sources and o.name != "internet_pulse"
    )


@pytest.mark.slow("a day of calls, every hour")
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
            if step % 6 == 5:
                gc.collect()
                held.append(len(gc.get_objects()))
    calls = sum(map(len, asked.values()))
    print(f"{calls} requests to {len(asked)} hosts in {HOURS} h; objects held {held[0]:,} .. {held[-1]:,}")
    assert held[-1] < 1.1 * held[0] + 20_000
    for group, hosts in groups(registry).items():
        for host in hosts:
            assert most_in_a_period(asked.get(host, []), group) <= group.budget, (group.name, host)


def groups(registry: Registry) -> dict[HostGroup, set[str]]:
    """The hosts of each group, by what the sources' probe queries would ask."""
    found: dict[HostGroup, set[str]] = defaultdict(set)
    for source in registry.sources:
        try:
            plan = source.plan(source.make_probe(datetime.now(UTC)), {})
        except (AttributeError, TypeError, LookupError, ValueError):
            continue
        for request in plan if isinstance(plan, list | tuple) else [plan]:
            if request is not None:
                found[source.hosts].add(urlsplit(request.url).netloc)
    return found


def most_in_a_period(times: list[float], group: HostGroup) -> int:
    """The most requests within one period, counted from each request."""
    return max((sum(t <= u < t + max(group.period_s, 1) for u in times) for t in set(times)), default=0)
