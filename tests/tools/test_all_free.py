"""All free endpoints without a key, on the simulated world as it usually is: each says what the world says."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
import pytest

from tests.calls.parts import Engine, engine
from tests.json_schemas import validate
from tests.size import a_share
from tests.specified import ENDPOINTS, SHAPES
from tests.tools.faulty.skipping import LoopClock, SkippingLoop
from tests.tools.faulty.upstreams import EDITS, VIA, Pages, Upstreams
from toolserver.registry.registry import Registry
from toolserver.registry.response_schema import answer_schema
from toolserver.settings import Settings, UpstreamSettings
from toolserver.world.answers import probe
from toolserver.world.model import ROUTES, World
from toolserver.world.providers import load_providers
from toolserver.world.state import SimClock, WorldState

pytestmark = pytest.mark.usefixtures("simulated_time")

load_providers()
FREE = Registry(o for o in Registry.load("tools") if o.function.__module__.startswith("tools.free."))
BY_ENDPOINT = {operation.endpoint: operation for operation in FREE}
T = 1_800_000_000  # a Friday morning; the world stands still for the minute that begins here
WORLD = World(1, T, EDITS)
TARGETS = Settings().probes.targets
OURS_S = {"gas": 15, "model-hub-trending": 600, "chain-network": 30}  # where the specification lists no seconds
LONG = {"earthquake", "climate/earthquakes", "climate/weather-alerts", "harnesses"}
"""Endpoints whose lists are cut when there is much: that is all that they may warn of when all is well."""

SHOWN_CHARS, MOST_CHARS = 50_000, 500_000
"""What Claude Code shows its model of a result, and how much of it a tool can ask for with `maxResultSizeChars`."""

OF_ITSELF = {"health", "ai-stats", "find-tools"}  # nothing that the world could say
CALLS = [(name, query) for name, row in ENDPOINTS.items() for query in dict.fromkeys(("", row.example, *row.good))]
FEWER = {"climate/weather-alerts": "limit=30"}  # a page of fifty may be cut by its tokens


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


@asynccontextmanager
async def service(pages: Pages) -> AsyncIterator[tuple[Engine, Upstreams]]:
    """A service with all free tools and no key, which has been up for as long as it takes to warm up."""
    clock = LoopClock(datetime.fromtimestamp(T, UTC))
    upstreams = Upstreams(clock, pages)
    async with engine(FREE, internet=upstreams, clock=clock, upstream=UpstreamSettings(via=VIA)) as e:
        for source, query in (read for operation in FREE for read in operation.warm):
            await e.cache.fresh(source, query, sla_s=0)
        yield e, upstreams


async def said(e: Engine, endpoint: str, query: str = "") -> bytes:
    """The whole answer to a query string."""
    outcome = await e.call(BY_ENDPOINT[endpoint].name, dict(parse_qsl(query)))
    return outcome.rendered.payload


async def test_a_tool_with_answers_longer_than_hosts_show_unasked_says_how_long_they_are(pages):
    widest = {"climate/earthquakes": "magnitude=all&period=month"}
    async with service(pages) as (e, _):
        for operation in FREE:
            most = operation.arguments.model_json_schema()["properties"].get("limit", {}).get("maximum")
            words = [widest.get(operation.endpoint, ENDPOINTS[operation.endpoint].example)]
            words += [f"limit={most}"] if most else []
            chars = len((await said(e, operation.endpoint, "&".join(words))).decode())
            if chars > SHOWN_CHARS:
                assert chars <= (operation.longest_chars or 0) <= MOST_CHARS, (operation.name, chars)
            else:
                assert operation.longest_chars is None, (operation.name, chars)


def test_the_endpoints_are_those_of_the_specification():
    assert set(BY_ENDPOINT) == set(ENDPOINTS), (
        "a new free endpoint needs its contract: tests/test_contracts.py writes it"
    )


@pytest.mark.parametrize(("endpoint", "query"), a_share(CALLS, 3), ids=lambda value: value or "-")
async def test_an_answer_is_whole_and_says_what_the_world_says(pages, endpoint, query):
    query = "&".join(part for part in (query, "limit" not in query and FEWER.get(endpoint)) if part)
    async with service(pages) as (e, upstreams):
        answer = json.loads(await said(e, endpoint, query))

    assert upstreams.unmatched == []
    codes = {warning["code"] for warning in answer.get("warning", [])}
    nowhere = endpoint in ("weather", "air-quality") and answer["data"]["default_location"]
    assert codes - ({"truncated"} if endpoint in LONG else set()) == ({"default_location"} if nowhere else set())
    assert answer["stale"] is False
    assert {s["status"] for s in answer["_meta"]["sources"]} <= {"live", "cached"}
    assert answer["endpoint"] == endpoint
    validate(answer, answer_schema(BY_ENDPOINT[endpoint], full=True))
    if endpoint in SHAPES and query == ENDPOINTS[endpoint].example:
        validate(answer["data"], SHAPES[endpoint])
    agrees(expected(endpoint, query), answer)


def expected(endpoint: str, query: str) -> Any:
    """The members of the answer that the world fixes."""
    if endpoint in OF_ITSELF:
        return {}
    if endpoint == "internet-pulse":
        return {"data": [{"name": name, "latency_ms": latency(host)} for name, host in TARGETS.items()]}
    params = dict(parse_qsl(query))
    if endpoint == "air-quality":
        params = {k: v for k, v in params.items() if "lat" in params and "lon" in params}  # half a place is none
    assert endpoint in ROUTES.expectations, f'a provider in tools/simulated says what to expect: @expects("{endpoint}")'
    found = ROUTES.expectations[endpoint](WORLD, params)
    return found if endpoint in ("briefing", *BESIDE_DATA) else {"data": found}


BESIDE_DATA = ("climate/earthquakes", "climate/weather-alerts")  # their expectations say `count` and `data`
FIRST_ONLY = {".data.benchmarks"}  # of a list


def latency(host: str) -> int:
    state = WorldState(clock=SimClock(T, frozen=True))
    return int(probe(state, host)[0]["latency_ms"])


def agrees(expected_: Any, answer: Any, path: str = "") -> None:
    """Every member that is expected is in the answer, lists are as long, numbers equal to what they are rounded to."""
    if isinstance(expected_, dict):
        assert expected_.keys() <= answer.keys(), path
        for name, member in expected_.items():
            agrees(member, answer[name], f"{path}.{name}")
    elif isinstance(expected_, list):
        assert len(answer) == len(expected_) or path in FIRST_ONLY, path
        for index, one in enumerate(expected_):
            agrees(one, answer[index], f"{path}[{index}]")
    elif isinstance(expected_, int | float) and not isinstance(expected_, bool):
        assert answer == pytest.approx(expected_, rel=1e-6), path
    else:
        assert answer == expected_, path


@pytest.mark.parametrize("endpoint", a_share(ENDPOINTS, 3, first=1))
async def test_an_answer_is_the_same_bytes_as_long_as_it_is_said_to_be(pages, endpoint):
    row = ENDPOINTS[endpoint]
    lives_s = OURS_S[endpoint] if row.ttl_s is None else row.ttl_s
    async with service(pages) as (e, upstreams):
        first = await said(e, endpoint, row.example)
        if lives_s == 0:
            await anyio.sleep(1)
            assert await said(e, endpoint, row.example) != first
            return
        await anyio.sleep(lives_s / 3)
        asked = len(upstreams.asked)  # those included that came too late for the answer
        await anyio.sleep(lives_s / 6)
        assert await said(e, endpoint, row.example) == first
        assert len(upstreams.asked) == asked
        await anyio.sleep(lives_s / 2 - 0.5)
        assert await said(e, endpoint, row.example) == first
        await anyio.sleep(1)
        later = json.loads(await said(e, endpoint, row.example))
    assert later != json.loads(first)


async def test_the_same_world_makes_the_same_answers(pages):
    whole = []
    for _ in range(2):
        async with service(pages) as (e, _):
            answers = [json.loads(await said(e, endpoint)) for endpoint in ENDPOINTS]
        whole.append(answers)
    assert whole[0] == whole[1]
