"""`python -m tests.truth.cost`: what the proofs cost, in upstream requests and in time of the processor.

The same simulated day is lived twice: as the service is, and as it was before the proofs. Then no answer is checked
for life, movement or size, and no source is read only because it proves another. Every tool that has a source is asked
once in its TTL, at the moment that its last answer ends, as by a client that always wants the newest.

Work is counted in calls of functions, Python's and those in C, which are the same on a busy machine; the seconds that
are printed beside them are not. What the simulated world does is in neither. `--hours N` lives less than a day.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import anyio

from tests.calls.parts import RICH, engine, funded_money
from tests.served import all_tools
from tests.tools.faulty import upstreams
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.truth.stage import T1, edits_of, simulated_time
from tests.truth.weeks import ASKED
from tools.free import chain_network, model_hub_trending
from tools.shared import deltas, front_page, gas, spot
from tools.sources import coinbase
from tools.sources.ethereum import FEE_HISTORY
from tools.sources.hackernews_algolia import FRONT_PAGE
from tools.sources.huggingface import MODELS_LIKED_7D
from tools.sources.solana import EPOCH_INFO, PERFORMANCE_SAMPLES
from toolserver import FallbackReader
from toolserver.settings import UpstreamSettings
from toolserver.upstream.decode import read_body
from toolserver.upstream.http_sender import HttpSender

STEP_S = 5.0  # no TTL is shorter
MOST = 0.05  # that truth may cost: of the requests, and of the time of the processor
UNCHECKED = (
    "toolserver.upstream.fetcher._judge_life",
    "toolserver.upstream.freshness.StillnessGuard.check",
    "toolserver.upstream.outlier_guard.SizeGuard.check",
    "tools.shared.front_page.require_one_page",
    "tools.shared.front_page.require_given",
)
BELIEVED = (
    "tools.shared.front_page.require_young",
    "tools.shared.disasters.require_living",
    "tools.shared.quakes.whole_day",
    "tools.shared.quakes.living_day",
)
"""Checks that return what they are given."""


@dataclass
class Day:
    """Requests by source, answers that were asked for, processor seconds of the service, calls of functions."""

    requests: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    cpu_s: float = 0.0
    calls: int = 0

    @property
    def asked(self) -> int:
        return self.requests.total()


async def _btc_before(reading: FallbackReader) -> spot.Spot:
    return spot.from_stats(await reading.read(coinbase.PRODUCT_STATS, "BTC-USD"))


async def _gas_before(reading: FallbackReader) -> gas.GasPrice:
    history = await reading.read(FEE_HISTORY)
    return gas.sound(gas.from_history(history, gas.obtained_at(reading)))


async def _page_before(reading: FallbackReader) -> Any:
    return await reading.read(FRONT_PAGE)


async def _hub_before(reading: FallbackReader) -> Any:
    return await reading.read(MODELS_LIKED_7D)


async def _node_before(reading: FallbackReader) -> Any:
    samples, epoch = await reading.read(PERFORMANCE_SAMPLES), await reading.read(EPOCH_INFO)
    at = min(note.fetched_at for note in reading.notes[:2] if note.fetched_at)
    return chain_network.Heard(epoch, samples[: chain_network.AVERAGED], at)


@contextmanager
def before_proofs() -> Iterator[None]:
    """No check, and no read whose answer is used only for one."""
    with ExitStack() as patched:
        for name in UNCHECKED:
            patched.enter_context(mock.patch(name, return_value=None))
        for name in BELIEVED:
            patched.enter_context(mock.patch(name, lambda found, *args, **how: found))
        for module, name, earlier in (
            (spot, "coinbase_btc", _btc_before),
            (gas, "_of_history", _gas_before),
            (front_page, "proved_page", _page_before),
            (deltas, "proved_page", _page_before),
            (model_hub_trending, "read_living_list", _hub_before),
            (chain_network, "_node", _node_before),
        ):
            patched.enter_context(mock.patch.object(module, name, earlier))
        yield


@contextmanager
def counted(day: Day) -> Iterator[None]:
    """Count every request of a source, and the time that the simulated world itself takes."""
    send, run = HttpSender.send, upstreams.Pages.run

    async def send_counted(self: HttpSender, source: Any, *args: Any) -> Any:
        day.requests[source.name] += 1
        return await send(self, source, *args)

    async def run_timed(self: upstreams.Pages, make: Any) -> Any:
        """A page is made on the loop itself: nothing else runs meanwhile. Neither its time nor its calls count."""
        began, profile = time.process_time(), sys.getprofile()
        sys.setprofile(None)
        try:
            return await run(self, make)
        finally:
            sys.setprofile(profile)
            day.cpu_s -= time.process_time() - began

    with (
        mock.patch.object(HttpSender, "send", send_counted),
        mock.patch.object(upstreams.Pages, "run", run_timed),
        mock.patch("toolserver.upstream.fetcher.read_body", read_body),  # each time: what is read once costs nothing
    ):
        yield


async def live_day(day: Day, hours: float) -> None:
    """Ask for every tool whenever its last answer ended, for so many hours of the normal world."""
    clock = LoopClock(datetime.fromtimestamp(T1, UTC))
    internet = upstreams.Upstreams(clock, upstreams.Pages())
    internet.state.edits = edits_of("normal")
    registry, money = all_tools(), funded_money(clock)
    money.ledger.fund(RICH, 100_000_000)  # type: ignore[attr-defined]
    due = {each.name: 0.0 for each in registry if each.sources and each.tier in ("free", "premium")}
    via = UpstreamSettings(via=upstreams.VIA)
    async with engine(registry, internet=internet, clock=clock, money=money, upstream=via) as e:
        while clock.passed_s < hours * 3600:
            for name in [name for name, at in due.items() if at <= clock.passed_s]:
                asked = ASKED.get(name, {})
                await e.call(name, asked, token=RICH)
                day.answers += 1
                due[name] = clock.passed_s + max(registry[name].ttl(registry[name].arguments(**asked)), STEP_S)
            await clock.sleep(STEP_S)


def run_day(hours: float) -> Day:
    """`live_day` on an event loop of simulated time."""
    day = Day()

    def count(frame: Any, event: str, argument: Any) -> None:
        day.calls += event in ("call", "c_call")

    logging.disable(logging.CRITICAL)
    try:
        with simulated_time(), counted(day):
            began = time.process_time()
            sys.setprofile(count)
            anyio.run(live_day, day, hours, backend_options={"loop_factory": SkippingLoop})
            sys.setprofile(None)
            day.cpu_s += time.process_time() - began
    finally:
        sys.setprofile(None)
        logging.disable(logging.NOTSET)
    return day


def compare(hours: float) -> tuple[Day, Day]:
    """The day as it was before the proofs, and as it is."""
    run_day(min(hours, 0.02))  # what is loaded at the first use is in neither
    with before_proofs():
        before = run_day(hours)
    return before, run_day(hours)


def report(before: Day, now: Day) -> Iterator[str]:
    """Both days and what is more now, with every source that is asked more or less often."""
    yield f"{now.answers} answers; before {before.answers}"
    for what, then, today in (
        ("upstream requests", before.asked, now.asked),
        ("processor seconds", before.cpu_s, now.cpu_s),
        ("calls of functions", before.calls, now.calls),
    ):
        yield f"{what}: {then:.6g} before, {today:.6g} with proofs, {today / then - 1:+.2%}"
    for name in sorted(before.requests | now.requests):
        if before.requests[name] != now.requests[name]:
            yield f"  {name}: {before.requests[name]} before, {now.requests[name]} with proofs"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth.cost")
    parser.add_argument("--hours", type=float, default=24.0)
    given = parser.parse_args()
    before, now = compare(given.hours)
    print(*report(before, now), sep="\n")
    is_dear = now.asked > (1 + MOST) * before.asked or now.calls > (1 + MOST) * before.calls
    return 1 if is_dear else 0


if __name__ == "__main__":
    sys.exit(main())
