"""Every source of every free tool, every kind of fault, with and without a kept answer: the real engine each time.

Each cell is an engine of its own on the simulated world, in simulated time, with the fault done by the world's own
code to one source. FAULTS=all runs every cell, REQUIRE=all one of 36, the fast set one of 100 for each fourth tool.
"""

import os
from collections import Counter

import pytest

import toolserver.calls.response_cache
import toolserver.upstream.fetcher
import toolserver.world.answers
from tests.size import a_share, sized
from tests.tools.faulty.cells import Bench, Situation, situation
from tests.tools.faulty.judging import Cell, Judge, faults_of
from tests.tools.faulty.reading import parsed_once
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.registry.registry import Operation, Registry
from toolserver.world.providers import load_providers

pytestmark = pytest.mark.usefixtures("simulated_time")

load_providers()
FREE = Registry(o for o in Registry.load("tools") if o.function.__module__.startswith("tools.free."))
TOOLS = [operation for operation in FREE if operation.sources]
WHOLE = os.environ.get("FAULTS") == "all"  # every cell: half an hour of one core
STEP = 1 if WHOLE else sized(36, fast=100)
COUNTED: Counter[str] = Counter()
EXCUSED: set[tuple[str, str]] = set()

ASKED_FOR = {
    "OpenMeteo.geocoding": (("place", "Hallstatt"),),
    "CoinPaprika.tickers": (("coin", "SOL"),),
}
"""The arguments without which a source is not asked."""

LEGITIMATE = {
    ("Probe.tcp_connect", "*"): "it sends no HTTP: that a host cannot be reached, or late, is what it measures",
    ("GitHub.search_repositories", "error200"): "results marked as incomplete are results; a warning says so",
    ("NWS.alerts_active", "drift"): "the form of 2019 has other ids",
    ("Solana.performance_samples", "drift"): "the older form has no user transactions of its own; a warning says so",
    ("Bybit.linear_tickers", "drift"): "rows without a period are left out, and the rows are counted",
    ("Etherscan.gas_oracle", "drift"): "the older form has whole numbers",
    ("InternetDB.host", "empty"): "that nothing is known of an address is an answer",
    ("FRED.observations", "jump"): "only interest rates have a limit on how far they may move",
    ("FRED.graph_csv", "old"): "each of its figures carries its own date, and two days of a market may be alike",
    ("FRED.graph_csv", "jump"): "only interest rates have a limit on how far they may move",
    ("HackerNews.top_ids", "jump"): "when the page and the search do not match, the search is named",
    ("HuggingFace.models_liked_7d", "old"): "the list by score, asked next, carries no times of change",
    ("Coinbase.candles", "jump"): "when the candles and the statistics do not match, the statistics are named",
    ("NASA.firms_viirs_24h", "empty"): "without fires in Alaska, which may be, the mainland's are those of before",
    ("NASA.firms_viirs_24h", "old"): "Alaska's file may be old, since there may be no fires: the mainland's is kept",
    ("NIFC.wildfire_incidents", "empty"): "there may be no large fire",
    ("SWPC.alerts", "old"): "there may be no alert for a day",
    ("Cboe.delayed_quote", "latency of 3 s"): "few quotes come in time; a warning counts those that do not",
    ("Finnhub.quote", "latency of 3 s"): "few quotes come in time; a warning counts those that do not",
    ("Finnhub.quote", "slow_drip"): "few quotes come in time; a warning counts those that do not",
    ("NASA.eonet_events", "slow_drip"): "time is up before GDACS has told all: what both lists know is shown twice",
}
"""Complaints that are none, by source and kind of fault, each with its reason."""


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(FREE)


@pytest.fixture(autouse=True)
def _parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read twice is parsed once, and nothing is compressed: there are thousands of answers."""
    monkeypatch.setattr(toolserver.calls.response_cache, "LARGE", 1 << 60)  # nobody wants it compressed here
    monkeypatch.setattr(toolserver.world.answers, "COMPRESSED_FROM", 1 << 60)
    monkeypatch.setattr(toolserver.upstream.fetcher, "read_body", parsed_once)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("operation", a_share(TOOLS, 4, first=1), ids=lambda operation: operation.name)
async def test_no_fault_of_a_source_makes_a_tool_lie_or_hide_it_or_come_late(bench: Bench, operation: Operation):
    wrong = []
    for name in dict.fromkeys(source.name for source in operation.sources):
        taken = operation.arguments.model_fields
        asked = tuple((argument, value) for argument, value in ASKED_FOR.get(name, ()) if argument in taken)
        plain, keyed = Situation(operation, name, asked), Situation(operation, name, asked, keyed=True)
        at = await situation(bench, plain) or await situation(bench, keyed)
        assert at is not None, f"{name} never serves {operation.name}"
        judge = Judge(bench, at)
        await judge.prepare()
        for cell in cells_of(at):
            COUNTED[cell.kind] += 1
            wrong += [f"{cell}: {said}" for said in await judge.complaints(cell) if not excused(cell)]
    assert wrong == []


def cells_of(at: Situation) -> list[Cell]:
    """All cells of a source, or every so many of them, other ones for each source."""
    cells = [Cell(at, kind, fault, warm) for kind, fault in faults_of(at) for warm in (True, False)]
    names = list(dict.fromkeys(source.name for source in at.operation.sources))
    return cells[names.index(at.name) % STEP :: STEP]


def excused(cell: Cell) -> bool:
    found = {(cell.at.name, cell.kind), (cell.at.name, "*")} & LEGITIMATE.keys()
    EXCUSED.update(found)
    return bool(found)


def test_the_matrix_is_as_large_as_it_is_said_to_be():
    print(f"\n{sum(COUNTED.values())} cells, {len(COUNTED)} kinds of fault, {len(TOOLS)} tools")
    if not WHOLE:
        return  # a part of the cells is judged as they are, and counts nothing
    assert len(COUNTED) >= 30
    assert min(COUNTED.values()) >= 2 * len(TOOLS)
    assert set(LEGITIMATE) - EXCUSED == set()
