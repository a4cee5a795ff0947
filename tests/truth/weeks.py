"""Weeks without faults: how many answers carry a warning, what they cost upstream, and in time of the processor.

One engine for each week, with what a service does in the background, asked for every tool that has a source.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio

from tests.calls.parts import RICH, Engine, engine, funded_money
from tests.internet import Internet
from tests.served import all_tools
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from tests.truth.stage import T1, edits_of, simulated_time
from toolserver.registry.registry import Operation, Registry
from toolserver.serving.background_tasks import follow_asked, keep_warm, prepare_expected
from toolserver.settings import UpstreamSettings

DAY_S, EVERY_S, ROUND_S = 86400.0, 25 * 3600.0, 900.0
ROUNDS, WAKING = 8, 5  # an hour after waking the hour before is known
NOTICES = {"truncated", "default_location"}  # what an answer shows, and of where: nothing is missing
ASKED: dict[str, dict[str, Any]] = {"exposure_lookup": {"ip": "1.1.1.1"}}


@dataclass
class Week:
    """What was answered: answers, those with a warning by tool and code, null sections, requests, processor seconds."""

    scenario: str
    days: float
    answers: int = 0
    warned: Counter[str] = field(default_factory=Counter)
    empty: Counter[str] = field(default_factory=Counter)
    waking: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    cpu_s: float = 0.0

    def __str__(self) -> str:
        share = sum(self.warned.values()) / max(self.answers, 1)
        told = "".join(f"\n  {count} x {what}" for what, count in (self.warned + self.empty).most_common())
        return (
            f"{self.scenario}, {self.days:g} days: {self.answers} answers of a service in use, {share:.3%} with a "
            f"warning, {sum(self.empty.values())} null; {sum(self.waking.values())} warned on waking; "
            f"{self.requests} upstream requests, {self.cpu_s:.1f} s of the processor{told}"
        )


@asynccontextmanager
async def served_for_days(registry: Registry, internet: Internet, clock: LoopClock) -> AsyncIterator[Engine]:
    """An engine with what a service does in the background, and a caller who can pay for it all."""
    money = funded_money(clock)
    money.ledger.fund(RICH, 100_000_000)  # type: ignore[attr-defined]
    via = UpstreamSettings(via=VIA)
    async with engine(registry, internet=internet, clock=clock, money=money, upstream=via) as e:
        e.tasks.start_soon(keep_warm, registry, e.cache)
        e.tasks.start_soon(follow_asked, registry, e.pipeline, clock)
        e.tasks.start_soon(prepare_expected, e.answers)
        yield e


async def live_week(scenario: str, days: float) -> Week:
    """Once in 25 hours, so at every hour of the day, ask for every tool in some rounds, a quarter of an hour apart.

    After a day in which nobody asked, contract 2 lets a free answer be the last good one while our own pacing holds the
    new one back, and nobody knows what changed in the hour before: what the rounds of the first hour say is counted
    apart. Most of the others are composed anew: few answers live as long as the time between two rounds.
    """
    clock = LoopClock(datetime.fromtimestamp(T1, UTC))
    upstreams = Upstreams(clock, Pages())
    upstreams.state.edits = edits_of(scenario)
    week, registry = Week(scenario, days), all_tools()
    asked = [each for each in registry if each.sources and each.tier in ("free", "premium")]
    async with served_for_days(registry, upstreams, clock) as e:
        while clock.passed_s < days * DAY_S:
            began = clock.passed_s
            for number in range(ROUNDS):
                for operation in asked:
                    await note_answer(e, operation, week, waking=number < WAKING)
                await clock.sleep(ROUND_S)
            await clock.sleep(EVERY_S - (clock.passed_s - began))
    week.requests = len(upstreams.asked)
    return week


async def note_answer(e: Engine, operation: Operation, week: Week, *, waking: bool) -> None:
    """Ask once, and count what is remarked about."""
    began = time.process_time()
    outcome = await e.call(operation.name, ASKED.get(operation.name, {}), token=RICH)
    week.cpu_s += time.process_time() - began
    answer = json.loads(outcome.rendered.payload)
    codes = {w["code"] for w in answer.get("warning", ()) if w["code"] not in NOTICES}
    remark = f"{operation.name}: {', '.join(sorted(codes)) or 'stale'}"
    if waking:
        week.waking[remark] += bool(codes or answer["stale"])
        return
    week.answers += 1
    week.warned[remark] += bool(codes or answer["stale"])
    parts = answer.get("sections") or answer.get("context") or {"data": answer.get("data", answer)}
    week.empty.update(f"{operation.name}: {name} is null" for name, part in parts.items() if part is None)


def run_week(scenario: str, days: float) -> Week:
    """`live_week` on an event loop of simulated time."""
    logging.disable(logging.CRITICAL)
    try:
        with simulated_time():
            return anyio.run(live_week, scenario, days, backend_options={"loop_factory": SkippingLoop})
    finally:
        logging.disable(logging.NOTSET)
