"""The world as a data centre sees it: hosts that refuse such addresses do so, and every free endpoint answers."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from tests.calls.parts import RICH, Engine, engine
from tests.served import all_tools
from tests.specified import SPECIFIED
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import VIA, Pages, Upstreams
from toolserver.settings import UpstreamSettings
from toolserver.world.state import scenarios

pytestmark = pytest.mark.usefixtures("simulated_time")

T = 1_800_000_000
REFUSING = {
    "www.cisa.gov",
    "query1.finance.yahoo.com",
    "finance.yahoo.com",
    "www.reddit.com",
    "fapi.binance.com",
    "api.binance.com",
    "api.bybit.com",
    "indexer.dydx.trade",
}
FREE = [operation for operation in all_tools() if operation.function.__module__.startswith("tools.free.")]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@asynccontextmanager
async def in_the_cloud() -> AsyncIterator[tuple[Engine, Upstreams]]:
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Upstreams(clock, Pages())
    for rule in scenarios()["cloud"].rules:
        upstreams.fault(rule["match"], rule["kind"])
    async with engine(all_tools(), internet=upstreams, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
        yield e, upstreams


async def answer(e: Engine, name: str) -> dict[str, Any]:
    outcome = await e.call(name, {}, token=RICH)
    found: dict[str, Any] = json.loads(outcome.rendered.payload)
    return found


async def test_no_free_endpoint_is_null_where_hosts_refuse_data_centres() -> None:
    async with in_the_cloud() as (e, upstreams):
        answers = {operation.name: await answer(e, operation.name) for operation in FREE}

        empty = [name for name, found in answers.items() if found.get("data", found.get("sections")) is None]
        assert empty == []
        assert len(answers) >= len(SPECIFIED)
        refused = Counter(host for request in upstreams.asked if (host := host_of(request)) in REFUSING)
        assert refused, "the scenario refuses nobody"
        listed = {each.host for each in e.service.fetcher.refusals.list_all()}
        assert listed <= REFUSING
        assert {"www.cisa.gov", "fapi.binance.com", "api.bybit.com", "indexer.dydx.trade"} <= listed


@pytest.mark.slow("an hour of the simulated world")
async def test_a_host_that_refuses_is_asked_once_in_an_hour() -> None:
    async with in_the_cloud() as (e, upstreams):
        for _ in range(4):
            for name in ("funding_rates", "cyber_threats"):
                await answer(e, name)
            await anyio.sleep(600)
        asked = Counter(host_of(request) for request in upstreams.asked)
        assert {asked[host] for host in ("www.cisa.gov", "fapi.binance.com", "api.bybit.com")} <= {1, 2}


async def test_what_the_refusals_leave_out_is_told() -> None:
    async with in_the_cloud() as (e, _):
        funding, threats = await answer(e, "funding_rates"), await answer(e, "cyber_threats")
        told = {(w["section"], w["code"]) for w in funding["warning"]}
        assert {("data.venues.bybit", "degraded_fallback"), ("data.venues.dydx", "section_unavailable")} & told
        used = {s["name"] for s in threats["_meta"]["sources"] if s["status"] != "error"}
        assert "CISA.known_exploited_copy" in used
        mood = await answer(e, "premium_sentiment")
        assert {w["section"] for w in mood["warning"]} & {"trending"}


def host_of(request: Any) -> str:
    parts = request.url.path.split("/")
    return str(parts[2]) if len(parts) > 2 else ""
