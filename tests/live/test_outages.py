"""When upstreams fail under a running server: what its callers get, and how often the upstreams are asked.

That no call takes longer than its tool's deadline is proved in simulated time: tests/tools/free/test_deadlines.py.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.processes import CORE, PATHS, UNLIMITED, Program, Sim, control, started
from tests.requirements import proves
from toolserver.registry.registry import Registry

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

REGISTRY = Registry.load("tools")
CALLERS = 1000
MINUTES = 60


class Upstreams:
    """A world, and servers on it that share one data directory."""

    def __init__(self, world: Program, sim: Sim, folder: Path) -> None:
        self.world, self.sim, self.folder = world, sim, folder

    def server(self, *flags: str, **more: str) -> Any:
        here = {"TOOLSERVER_UPSTREAM__VIA": self.world.url, **UNLIMITED, **more}
        return started("serve", *flags, folder=self.folder, **here)

    def later(self, seconds: float) -> None:
        """Move the world's clock; a server that is started then goes by it from the first call on."""
        self.sim.put("clock", {"advance_s": seconds})


@pytest.fixture
def upstreams(tmp_path: Path) -> Iterator[Upstreams]:
    with started("world", folder=tmp_path) as world, control(world.url) as sim:
        yield Upstreams(world, sim, tmp_path)


def ask(server: Program, names: tuple[str, ...]) -> dict[str, httpx.Response]:
    """All at once: an outage takes each its full time."""
    with httpx.Client(base_url=server.url, timeout=120, trust_env=False) as client, ThreadPoolExecutor(16) as pool:
        return dict(zip(names, pool.map(lambda name: client.get(PATHS[name]), names), strict=True))


def took_s(answer: httpx.Response) -> float:
    return answer.elapsed.total_seconds()


def used(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [source for source in body["_meta"]["sources"] if source["status"] != "error"]


def troubles(body: dict[str, Any]) -> set[str]:
    """The codes of its warnings, but for that of a list which is longer than what is shown."""
    return {warning["code"] for warning in body.get("warning", ())} - {"truncated"}


@proves("answers.stale-survives-restart", "answers.never-5xx", "answers.stale", "answers.keep-limit")
def test_after_a_restart_without_any_upstream_the_last_good_answers_are_given_and_marked(upstreams: Upstreams) -> None:
    with upstreams.server() as server:
        good = {name: answer.json() for name, answer in ask(server, CORE).items()}
    assert not [name for name, body in good.items() if body["stale"] or troubles(body)]

    upstreams.later(15 * MINUTES)
    upstreams.sim.scenario("all_down")
    with upstreams.server() as server:
        short_lived = tuple(name for name in CORE if name not in ("economic_data", "forex"))
        for name, answer in ask(server, short_lived).items():
            assert_stale(name, answer, good[name])

    upstreams.later(7 * 60 * MINUTES)
    upstreams.sim.scenario("cold_start_offline")
    with upstreams.server() as server:
        answers = ask(server, ("economic_data", "forex", "fear_greed", "service_status"))
    for name in ("economic_data", "forex", "fear_greed"):
        assert_stale(name, answers[name], good[name])
    beyond = answers["service_status"].json()  # status pages are kept for 15 or 30 minutes
    assert (beyond["data"], beyond["updated_at"], beyond["stale"]) == (None, None, True)
    assert beyond["warning"]


def assert_stale(name: str, answer: httpx.Response, good: dict[str, Any]) -> None:
    body = answer.json()
    assert answer.status_code == 200, name
    assert body["stale"] is body["_meta"]["stale"] is True, name
    assert {source["status"] for source in used(body)} == {"stale"}, name
    if name != "briefing":
        assert body["updated_at"] == good["updated_at"], name
    assert without_times(body) == without_times(good), name
    assert troubles(body) == {"stale_data"}, name
    assert answer.headers["cache-status"].startswith("toolserver; fwd=stale"), name
    assert int(answer.headers["age"]) >= 15 * MINUTES - 5, name


def without_times(body: dict[str, Any]) -> Any:
    """The payload but for the moments at which status pages were looked at."""
    content = json.loads(json.dumps(body.get("data", body.get("sections"))))
    services = (
        content
        if body["endpoint"] == "service-status"
        else content.get("services", [])
        if isinstance(content, dict)
        else []
    )
    for service in services:
        service.pop("checked_at", None)
    return content


@proves("answers.nothing-ever", "answers.never-5xx")
@pytest.mark.parametrize(("server_kind", "scenario"), [("hypercorn", "all_down"), ("uvicorn", "cold_start_offline")])
def test_with_nothing_ever_fetched_the_answer_is_null_and_never_stored(
    upstreams: Upstreams, server_kind: str, scenario: str
) -> None:
    upstreams.sim.scenario(scenario)
    with upstreams.server("--server", server_kind) as server:
        answers = ask(server, (*CORE, "health"))
        again = ask(server, ("forex",))["forex"]
    assert answers.pop("health").status_code == 200
    for name, answer in answers.items():
        body = answer.json()
        assert answer.status_code == 200, name
        assert nothing(body), (name, body.get("data"))
        assert body["stale"] is True, name
        assert body["warning"], name
        assert all(warning["message"] for warning in body["warning"])
        assert used(body) == [], name
        assert answer.headers["cache-control"] == "no-store", name
        assert "etag" not in answer.headers, name
    assert again.json()["data"] is None
    slowest = max(answers, key=lambda name: took_s(answers[name]))
    print(f"\n{server_kind}, {scenario}: {slowest} took longest, {took_s(answers[slowest]):.1f} s")


def nothing(body: dict[str, Any]) -> bool:
    """Whether an answer holds no value at all."""
    if body["endpoint"] == "briefing":
        return body["sections"] is body["summary"] is None
    return body["data"] is body["updated_at"] is None


@proves("answers.single-flight")
@pytest.mark.parametrize(
    ("server_kind", "name"), [("hypercorn", "economic_data"), ("hypercorn", "btc_price"), ("uvicorn", "economic_data")]
)
def test_a_thousand_cold_calls_at_once_ask_each_source_once(upstreams: Upstreams, server_kind: str, name: str) -> None:
    with upstreams.server("--server", server_kind) as server:
        upstreams.sim.fault("*", "latency", ms=2000)  # so that all callers come before the first answer
        upstreams.sim.forget()
        began = time.monotonic()
        answers = asyncio.run(crowd(server.address, PATHS[name]))
        took = time.monotonic() - began
        own = {source.name for source in REGISTRY[name].sources}
        asked = Counter((r["source"], r["url"]) for r in upstreams.sim.requests() if r["source"] in own)

    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200"}
    assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1
    assert asked
    assert set(asked.values()) == {1}, asked
    print(f"\n{server_kind}: {CALLERS} calls of {name} in {took:.1f} s, {len(asked)} requests to upstreams")


async def crowd(address: tuple[str, int], path: str) -> list[bytes]:
    """All callers connected, then all asking at once: whole answers, as they came."""
    doors = [await asyncio.open_connection(*address) for _ in range(CALLERS)]
    request = f"GET {path} HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n\r\n".encode()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        return answer

    done, waiting = await asyncio.wait([asyncio.create_task(one(*door)) for door in doors], timeout=200)  # a guard
    for task in waiting:
        task.cancel()
    assert not waiting, f"{len(waiting)} of {CALLERS} were never answered"
    return [task.result() for task in done]


CHAINS = {
    "briefing": 5,  # sections with a source to fall back to
    "btc_price": 1,
    "crypto_movers": 1,
    "earthquakes": 1,
    "economic_data": 7,
    "fear_greed": 1,
    "forex": 1,
    "predictions": 1,
}


@proves("answers.fallback", "answers.warning")
def test_when_every_first_source_is_down_each_chain_goes_on_and_says_so(upstreams: Upstreams) -> None:
    upstreams.sim.scenario("primary_down")
    with upstreams.server(CMC_API_KEY="sim-key") as server:  # without a key there is one index only
        answers = ask(server, tuple(CHAINS))
        expected = {name: upstreams.sim.get(f"expect/{PATHS[name].removeprefix('/api/')}") for name in ("btc_price",)}
    for name, answer in answers.items():
        body = answer.json()
        assert answer.status_code == 200
        assert body["stale"] is False, (name, body.get("warning"))
        for source in used(body):
            assert (source["status"] == "fallback") == ("replaces" in source), name
        fallbacks = {source["section"] for source in used(body) if source["status"] == "fallback"}
        assert len(fallbacks) >= CHAINS[name], (name, fallbacks)
        warned = [w for w in body["warning"] if w["code"] == "fallback_used"]
        assert {w["section"] for w in warned} >= fallbacks, name
        replaced = {s["replaces"] for s in used(body) if s["status"] == "fallback"}
        assert replaced <= {w["source"] for w in warned}, name
    price = answers["btc_price"].json()["data"]["price_usd"]
    assert price == pytest.approx(expected["btc_price"]["price_usd"], rel=0.005)
    assert answers["btc_price"].json()["data"]["venue"] == "kraken"


@proves("answers.as-expected")
def test_in_a_sound_world_every_answer_is_what_the_world_says(upstreams: Upstreams) -> None:
    upstreams.sim.put("clock", {"freeze": True})
    with upstreams.server() as server:
        bodies = {name: answer.json() for name, answer in ask(server, CORE).items()}
    for name, body in bodies.items():
        endpoint = PATHS[name].removeprefix("/api/")
        assert not troubles(body), name
        if endpoint in upstreams.sim.get("")["expectations"]:
            assert_holds(body.get("data", body), upstreams.sim.get(f"expect/{endpoint}"), endpoint)
    assert upstreams.sim.get("unmatched") == []


def assert_holds(said: Any, expected: Any, where: str) -> None:
    """Everything the world fixes, in the answer; numbers to the digits that are shown."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_holds(said[name], value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(said) <= len(expected) or where.endswith("]"), where
        for number, item in enumerate(said):
            assert_holds(item, expected[number], f"{where}[{number}]")
    elif isinstance(expected, int | float) and isinstance(said, float):
        assert said == pytest.approx(expected, rel=1e-3, abs=0.011), where
    else:
        assert said == expected, where
