"""Strangers ask for as many different things as they can: `python -m tests.hostile.arguments [values] [networks]`.

10,000 distinct arguments from 1,000 networks of IPv6 (each a /64, half of them in /48s of their own) go to every tool
that takes one, on a real `toolserver demo`. Meanwhile the answers to default arguments of all free tools are watched.
At the end stands what is left of the hosts' budgets.
"""

import asyncio
import itertools
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import httpx

from tests.live.processes import Program, started
from tests.served import all_tools
from tools.free.climate_weather_alerts import AREAS
from tools.sources.nws import Severity, Status, Urgency
from toolserver.registry.registry import Tier

AT_ONCE, PROGRESS = 24, 10_000
NO_ANSWER = 599  # within a minute: counted beside the statuses
SETTINGS = {"TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1"]', "TOOLSERVER_METRICS__PORT": "0"}
FREE = [o for o in all_tools() if o.tier is Tier.FREE and o.sources]
CHOSEN = [o for o in FREE if o.distinct]
WORDS = list(itertools.product(sorted(AREAS), get_args(Severity), get_args(Urgency), get_args(Status)))


def arguments_of(name: str, number: int) -> dict[str, str | int | float]:
    """Return the nth arguments of a tool, all different where it can tell so many apart."""
    if name in ("weather", "air_quality"):
        return {"lat": number % 170 - 85 + 0.25, "lon": round(number // 170 * 1.7 % 350 - 175, 2)}
    if name == "exposure_lookup":
        return {"ip": f"45.{number % 250}.{number // 250 % 250}.7"}
    if name == "stocks":
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return {"symbols": letters[number % 26] + letters[number // 26 % 26] + letters[number // 676 % 26] + "Q"}
    if name == "climate_weather_alerts":
        area, severity, urgency, status = WORDS[number % len(WORDS)]
        return {"area": area, "severity": severity, "urgency": urgency, "status": status}
    magnitudes, periods = ("significant", "4.5", "1.0", "all"), ("hour", "day", "week", "month")
    return {"magnitude": magnitudes[number % 4], "period": periods[number // 4 % 4]}


def address_of(network: int) -> str:
    """Return an address of the nth /64: every second one in a /48 of its own."""
    return f"2001:db8:{network if network % 2 else 0:x}:{network:x}::7"


@dataclass
class Watch:
    """What the watched tools answered: how often fresh, and how often not, by tool."""

    asked: int = 0
    not_fresh: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    times_s: list[float] = field(default_factory=list)

    @property
    def p99_s(self) -> float:
        """Of the answers to default arguments."""
        return sorted(self.times_s)[int(len(self.times_s) * 0.99)]


async def watch_defaults(client: httpx.AsyncClient, watch: Watch, turn: int) -> None:
    """Ask each free tool once for its default answer, from an address that did not ask before."""
    headers = {"X-Forwarded-For": f"10.{turn // 65536 % 256}.{turn // 256 % 256}.{turn % 256}"}
    for operation in FREE:
        began = time.monotonic()
        watch.asked += 1
        try:
            answer = await client.get(operation.path, headers=headers, timeout=30)
        except httpx.TimeoutException:
            watch.not_fresh[f"{operation.name} (no answer)"] += 1
            continue
        watch.times_s.append(time.monotonic() - began)
        body = answer.json()
        if answer.status_code != 200 or body["stale"] or body.get("data", body.get("sections")) is None:
            watch.not_fresh[operation.name] += 1


async def flood(client: httpx.AsyncClient, watch: Watch, values: int, networks: int) -> None:
    """Send all arguments of all tools, so many at once."""
    questions = iter([(o, number) for number in range(values) for o in CHOSEN])

    async def stranger() -> None:
        for operation, number in questions:
            headers = {"X-Forwarded-For": address_of(number % networks)}
            query = arguments_of(operation.name, number)
            try:
                answer = await client.get(operation.path, params=query, headers=headers, timeout=60)
            except httpx.TimeoutException:
                watch.statuses[NO_ANSWER] += 1
                continue
            watch.statuses[answer.status_code] += 1
            if watch.statuses.total() % PROGRESS == 0:
                print(f"{watch.statuses.total():,} asked: {dict(watch.statuses)}", flush=True)

    await asyncio.gather(*(stranger() for _ in range(AT_ONCE)))


async def run(program: Program, values: int, networks: int) -> tuple[Watch, Watch]:
    """Warm up, watch, flood. Return what was seen before the flood and during it."""
    before, during, done = Watch(), Watch(), asyncio.Event()
    limits = httpx.Limits(max_connections=AT_ONCE + 4)
    async with httpx.AsyncClient(base_url=program.url, limits=limits, trust_env=False) as client:
        for turn in range(30):
            before = Watch()
            await watch_defaults(client, before, turn)
            if not before.not_fresh:
                break
            await asyncio.sleep(2)

        async def keep_watching() -> None:
            for turn in itertools.count(100):
                await watch_defaults(client, during, turn)
                if done.is_set():
                    return
                await asyncio.sleep(0.2)

        watching = asyncio.create_task(keep_watching())
        await flood(client, during, values, networks)
        done.set()
        await watching
    return before, during


def read_budgets(program: Program) -> dict[tuple[str, str], tuple[float, float]]:
    """Return what is left of each host's budget, in all and for callers, as the metrics say."""
    text = httpx.get(str(program.ready["metrics_url"]), trust_env=False).text
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in text.splitlines():
        if line.startswith("toolserver_host_budget_left{"):
            labels, _, value = line.partition("{")[2].rpartition("} ")
            words = dict(each.split("=", 1) for each in labels.replace('"', "").split(","))
            found.setdefault((words["hosts"], words["host"]), {})[words["lane"]] = float(value)
    return {name: (left["all"], left["callers"]) for name, left in found.items()}


def main(values: int = 10_000, networks: int = 1_000) -> int:
    """Run it, print the figures, and return 1 if a default answer was not fresh or a status was 500 or more."""
    with tempfile.TemporaryDirectory() as folder, started("demo", folder=Path(folder), **SETTINGS) as program:
        began = time.monotonic()
        before, during = asyncio.run(run(program, values, networks))
        budgets = read_budgets(program)
    print(f"{len(CHOSEN)} tools x {values} arguments from {networks} networks in {time.monotonic() - began:.0f} s")
    print("before the flood, not fresh:", dict(before.not_fresh) or "none")
    print(f"default answers during it: {during.asked}, p99 {during.p99_s:.2f} s, slowest {max(during.times_s):.2f} s")
    print("not fresh:", dict(during.not_fresh) or "none")
    print("answers to the strangers, by status:", dict(during.statuses))
    print("left of the budgets (all, for callers):")
    for name, left in sorted(budgets.items()):
        print(f"  {' '.join(filter(None, name)):40} {left[0]:6.0f} {left[1]:6.0f}")
    return int(bool(during.not_fresh) or max(during.statuses) >= 500)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
