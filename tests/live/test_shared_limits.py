"""Real servers on one Redis allow together exactly what one allows."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.live.buying import bought
from tests.live.killing import selling
from tests.live.processes import Program, started
from tests.live.test_shared_database import BRIEFING, Shop, instances
from tests.postgres import url_of
from tests.redis_server import RedisServer
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

DAILY, PREMIUM, CALLS = 40, 30, 150
PATHS = ("/api/btc-price", "/api/forex", "/api/fear-greed")


@pytest.fixture
def shop(tmp_path: Path, own_redis: RedisServer) -> Iterator[Shop]:
    with started("world", folder=tmp_path) as world:
        own = {
            "TOOLSERVER_DATABASE_URL": url_of(tmp_path),
            "TOOLSERVER_REDIS_URL": own_redis.url,
            "TOOLSERVER_SCALING__INSTANCES": "3",
            "TOOLSERVER_SCALING__REDIS_DEADLINE_S": "5",
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1"]',
            "TOOLSERVER_LIMITS__DAILY": str(DAILY),
            "TOOLSERVER_LIMITS__SPACING_S": "0.000001",
            "TOOLSERVER_LIMITS__PREMIUM_PER_MINUTE": str(PREMIUM),
        }
        yield Shop(tmp_path, world, {**own, **selling(world.url)})


def ask_all(servers: list[Program], paths: tuple[str, ...], **headers: str) -> Counter[int]:
    """How many of so many calls, to all servers at once, were answered with each status."""

    def ask(number: int) -> int:
        at, path = servers[number % len(servers)], paths[number % len(paths)]
        return httpx.get(at.url + path, headers=headers, timeout=30, trust_env=False).status_code

    with ThreadPoolExecutor(12) as threads:
        return Counter(threads.map(ask, range(CALLS)))


def test_a_client_gets_from_all_together_what_a_day_holds_and_not_one_more(shop: Shop) -> None:
    with instances(shop, 3) as servers:
        for client in ("198.51.100.7", "2001:db8::7"):
            counted = ask_all(servers, PATHS, **{"x-forwarded-for": client})
            assert counted == {200: DAILY, 429: CALLS - DAILY}


@proves("limits.premium")
def test_a_token_gets_from_all_together_what_a_minute_holds_and_pays_for_no_more(shop: Shop) -> None:
    with instances(shop, 3) as servers:
        bearer = {"authorization": f"Bearer {bought(servers[0], shop.world.url, 4)}"}
        began = time.monotonic()
        counted = ask_all(servers, (BRIEFING,), **bearer)
        grown = (time.monotonic() - began) * PREMIUM / 60 + 1
        assert set(counted) == {200, 429}
        assert PREMIUM <= counted[200] <= PREMIUM + grown
        ((sold,),) = shop.rows("SELECT count(*) FROM reservation WHERE state = 'posted'")
        assert sold == counted[200]
