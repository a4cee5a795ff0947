"""Days of traffic on a healthy world: what our own pacing took from answers, and whether hosts got what they allow.

Traffic is `normal` or `busy`. In both, every tool is called one after the other, a quarter of an hour apart, for two
hours after a day of silence. Busy days begin with an hour in which all tools are called at once, every few seconds,
and callers ask for weather and air at places of their own. Each upstream answers after a usual time.
"""

import json
import logging
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import anyio

from tests.calls.parts import RICH, Engine
from tests.served import all_tools
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.paces import list_sent
from tests.tools.premium.simulated_time import Timed
from tests.truth.stage import T1, edits_of, simulated_time
from tests.truth.weeks import ASKED, DAY_S, EVERY_S, ROUND_S, ROUNDS, served_for_days
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import Operation, Tier
from toolserver.upstream.host_lane import RequestWithheld

TRAFFIC = ("normal", "busy")
LATENCY_S, BUSY_S = 0.15, 3600.0
PAUSES_S = (2.0, 60.0)  # between two calls of all tools in a busy hour
PLACED = ("weather", "air_quality")
MOST_S = {Tier.FREE: 1.5, Tier.PREMIUM: 3.0}
SLACK_S = 1.0  # a request that has its turn leaves later if others are under way


@dataclass
class Paced:
    """What happened: answers, what our own pacing took from them or delayed, and which budgets were exceeded."""

    traffic: str
    days: float
    answers: int = 0
    requests: int = 0
    withheld: Counter[str] = field(default_factory=Counter)
    stale: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    exceeded: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> dict[str, int]:
        """What must not happen, and how often it did."""
        named = {
            f"{what}: {name}": count
            for what in ("withheld", "stale", "late", "refused", "exceeded")
            for name, count in getattr(self, what).items()
        }
        return {name: count for name, count in named.items() if count}

    def __str__(self) -> str:
        told = "".join(f"\n  {count} x {what}" for what, count in self.faults.items())
        return (
            f"{self.traffic} traffic, {self.days:g} days: {self.answers} answers, {self.requests} upstream requests, "
            f"{sum(self.faults.values())} stale, withheld or late by our own pacing or beyond a host's budget{told}"
        )


async def live_paced(traffic: str, days: float) -> Paced:
    """Serve the traffic of some days."""
    clock, random = LoopClock(datetime.fromtimestamp(T1, UTC)), Random(20261128)
    upstreams = Timed(clock, LATENCY_S)
    upstreams.state.edits = edits_of("normal")
    found, registry = Paced(traffic, days), all_tools()
    asked = [each for each in registry if each.sources and each.tier in MOST_S]
    async with served_for_days(registry, upstreams, clock) as e:
        while clock.passed_s < days * DAY_S:
            began = clock.passed_s
            if traffic == "busy":
                await live_busy_hour(e, asked, found, min(BUSY_S, days * DAY_S), random)
            for _ in range(ROUNDS):
                for operation in asked:
                    await note_answer(e, operation, ASKED.get(operation.name, {}), found)
                if clock.passed_s >= days * DAY_S:
                    break
                await clock.sleep(ROUND_S)
            await clock.sleep(min(EVERY_S - (clock.passed_s - began), max(0.0, days * DAY_S - clock.passed_s)))
    found.requests = len(upstreams.exchanges)
    times: dict[str, list[float]] = defaultdict(list)
    for exchange in upstreams.exchanges:
        times[exchange.url.partition("/")[0]].append(exchange.began)
    for sent in list_sent(registry, times):
        found.exceeded[f"budget of {sent}"] += sent.most_in_a_period > sent.group.budget
        found.exceeded[f"burst of {sent}"] += sent.most_ahead_s > sent.group.burst * sent.group.gap_s + SLACK_S
    return found


async def live_busy_hour(e: Engine, asked: list[Operation], found: Paced, seconds: float, random: Random) -> None:
    """Call all tools at once, again and again."""
    until = e.clock.passed_s + seconds
    while e.clock.passed_s < until:
        async with anyio.create_task_group() as tasks:
            for operation in asked:
                tasks.start_soon(note_answer, e, operation, ASKED.get(operation.name, {}), found)
            for name in PLACED:
                place = {"lat": round(random.uniform(-60, 70), 2), "lon": round(random.uniform(-180, 180), 2)}
                tasks.start_soon(note_answer, e, e.registry[name], place, found)
        await e.clock.sleep(random.uniform(*PAUSES_S))


async def note_answer(e: Engine, operation: Operation, arguments: dict[str, Any], found: Paced) -> None:
    """Call a tool, and count what our own pacing took from the answer."""
    began = e.clock.passed_s
    found.answers += 1
    try:
        outcome = await e.call(operation.name, arguments, token=RICH)
    except UpstreamUnavailable:
        found.refused[operation.name] += 1
        return
    found.late[operation.name] += e.clock.passed_s - began > MOST_S[operation.tier]
    answer = json.loads(outcome.rendered.payload)
    found.stale[operation.name] += answer["stale"] or any(w["code"] == "partial" for w in answer.get("warning", ()))
    for source in answer["_meta"]["sources"]:
        if (source.get("reason") or "").startswith(RequestWithheld.word):
            found.withheld[f"{operation.name}: {source['name']}: {source['reason']}"] += 1


def run_paced(traffic: str, days: float) -> Paced:
    """`live_paced` on an event loop of simulated time."""
    logging.disable(logging.CRITICAL)
    try:
        with simulated_time():
            return anyio.run(live_paced, traffic, days, backend_options={"loop_factory": SkippingLoop})
    finally:
        logging.disable(logging.NOTSET)
