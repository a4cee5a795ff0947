"""Three real servers on one Redis and one PostgreSQL: one request to an upstream for all, the same bytes from all, and
nobody is refused for lack of Redis."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.buying import bought
from tests.live.killing import selling
from tests.live.processes import UNLIMITED, Program, Sim, control, started
from tests.live.test_shared_database import BRIEFING, Shop, instances
from tests.postgres import url_of
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

ASKED = (
    "btc-price", "crypto-movers", "earthquake", "fear-greed", "forex", "predictions", "service-status", "launches",
    "tech-news", "gas", "weather", "disaster-alerts", "cyber-threats", "economic-data", "briefing",
)  # fmt: skip
UNPACED = ("btc-price", "earthquake", "fear-greed", "forex")  # their upstreams may be asked at any moment
LATER_S = 7200  # beyond the lifetime of every answer that is asked for


@pytest.fixture
def shop(tmp_path: Path, own_redis: RedisServer) -> Iterator[Shop]:
    with started("world", folder=tmp_path) as world:
        own = {
            "TOOLSERVER_DATABASE_URL": url_of(tmp_path),
            "TOOLSERVER_REDIS_URL": own_redis.url,
            "TOOLSERVER_SCALING__INSTANCES": "3",
            "TOOLSERVER_UPSTREAM__VIA": world.url,
        }
        yield Shop(tmp_path, world, {**UNLIMITED, **own, **selling(world.url)})


@contextmanager
def clients_of(servers: list[Program], token: str | None = None) -> Iterator[list[httpx.Client]]:
    """A client of each server."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with ExitStack() as stack:
        yield [
            stack.enter_context(httpx.Client(base_url=at.url, headers=headers, timeout=30, trust_env=False))
            for at in servers
        ]


def ask_all(clients: list[httpx.Client], paths: list[str]) -> dict[str, list[httpx.Response]]:
    """The answers of all clients to all paths, each path asked of all at once."""
    with ThreadPoolExecutor(len(clients)) as threads:
        return {path: list(threads.map(lambda client: client.get(path), clients)) for path in paths}  # noqa: B023


def count_requests(sim: Sim) -> Counter[tuple[str, str]]:
    """How often each question was put to an upstream; of a POST the log does not say what was asked."""
    asked = (each for each in sim.requests() if each["source"] is not None and each["method"] == "GET")
    return Counter((each["source"], each["url"]) for each in asked)


def require_same_bytes(answers: dict[str, list[httpx.Response]]) -> None:
    """What is stale, for lack of time until the turn of a request, is of one instance: all others are the same."""
    stale = 0
    for path, found in answers.items():
        assert {each.status_code for each in found} == {200}, (path, [each.text[:300] for each in found])
        fresh = [each for each in found if b'"stale":true' not in each.content]
        stale += len(found) - len(fresh)
        assert len({each.content for each in fresh}) <= 1, "\n".join([path, *(each.text for each in fresh)])
        assert len({each.headers["etag"] for each in fresh if "etag" in each.headers}) <= 1, path
    assert stale <= len(answers), "most are fresh"


def test_each_upstream_is_asked_once_and_all_give_the_same_bytes(shop: Shop) -> None:
    with instances(shop, 3) as servers, control(shop.world.url) as sim:
        token = bought(servers[0], shop.world.url)
        sim.put("clock", {"freeze": True})
        with clients_of(servers) as clients, clients_of(servers, token) as buyers:
            paths = [f"/api/{name}" for name in ASKED]
            for round in range(2):
                time.sleep(1.5)  # all follow the world's clock
                sim.forget()
                answers = ask_all(clients, paths)
                paid = ask_all(buyers, [BRIEFING])
                require_same_bytes(answers)
                assert len({each.headers["x-service-receipt-id"] for each in paid[BRIEFING]}) == 3
                contents = {each.content.partition(b',"credits_remaining"')[0] for each in paid[BRIEFING]}
                assert len(contents) == 1
                require_same_bytes(ask_all(clients, paths))
                counted = count_requests(sim)
                assert len(counted) > 20, counted
                again = {question: times for question, times in counted.items() if times > 1}
                assert again == {}, (round, again)
                sim.put("clock", {"advance_s": LATER_S})


class Traffic:
    """Asks all servers again and again, on threads, and keeps what came back."""

    def __init__(self, servers: list[Program]) -> None:
        self._servers, self._stop = servers, threading.Event()
        self.statuses: Counter[int] = Counter()
        self.answered: Counter[str] = Counter()  # by server
        self._threads = ThreadPoolExecutor(len(servers))
        self._working = [self._threads.submit(self._ask, at) for at in servers]

    def _ask(self, at: Program) -> None:
        with httpx.Client(base_url=at.url, timeout=60, trust_env=False) as client:
            turn = 0
            while not self._stop.is_set():
                self.statuses[client.get(f"/api/{ASKED[turn % len(ASKED)]}").status_code] += 1
                self.answered[at.url] += 1
                turn += 1
                time.sleep(0.02)

    def end(self) -> None:
        self._stop.set()
        for each in self._working:
            each.result(60)
        self._threads.shutdown()


def say_ready(at: Program) -> Any:
    return httpx.get(f"{at.url}/readyz", timeout=10, trust_env=False).json()


def wait_for(what: Callable[[], bool], within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_nobody_is_refused_while_redis_is_empty_gone_or_hangs_and_all_agree_again_after_it(
    shop: Shop, own_redis: RedisServer
) -> None:
    with instances(shop, 3) as servers, control(shop.world.url) as sim:
        traffic = Traffic(servers)
        try:
            sim.put("clock", {"speed": 20})  # so that answers expire all the time
            time.sleep(3)
            for away, back in (
                (lambda: own_redis.command("flushall"), lambda: None),
                (own_redis.hang, own_redis.go_on),
                (own_redis.stop, own_redis.start),
            ):
                away()
                before = traffic.answered.copy()
                time.sleep(4)
                wait_for(lambda: min((traffic.answered - before)[at.url] for at in servers) > len(ASKED))  # noqa: B023
                back()
                wait_for(lambda: all("redis" not in str(say_ready(at)) for at in servers))
                time.sleep(1)
        finally:
            traffic.end()
        assert sum(traffic.statuses.values()) > 100
        assert set(traffic.statuses) == {200}, traffic.statuses
        sim.put("clock", {"speed": 1, "advance_s": LATER_S, "freeze": True})
        time.sleep(1.5)
        sim.forget()
        with clients_of(servers) as clients:
            require_same_bytes(ask_all(clients, [f"/api/{name}" for name in UNPACED]))
            counted = count_requests(sim)
        assert set(counted.values()) == {1}, counted
