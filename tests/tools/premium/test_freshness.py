"""Ages and latencies are those of the very exchanges that an answer is made of, whoever else was asked meanwhile."""

import pytest

from tests.requirements import proves
from tests.specified import PREMIUM
from tests.tools.premium.store import store


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


def used(body):
    return [source for source in body["_meta"]["sources"] if source["status"] != "error"]


@proves("pro.latency")
async def test_the_status_is_that_of_each_exchange_of_this_refresh(shop):
    first = (await shop.buy("briefing", "include=btc,fear-greed,earthquakes")).json()
    shop.clock.advance(61)
    second = (await shop.buy("briefing", "include=btc,fear-greed,earthquakes")).json()

    assert {source["status"] for source in used(first)} == {"live"}
    states = {source["name"]: source["status"] for source in used(second)}
    assert states["AlternativeMe.fear_greed"] == "cached"
    assert states["Coinbase.product_stats"] == "live"


@proves("pro.latency")
async def test_a_fallback_says_for_whom_and_why_it_stands_and_is_listed_as_such(shop):
    shop.down("Coinbase.product_stats", kind="status", code=500)
    body = (await shop.buy("briefing", "include=btc")).json()
    by_status = {source["status"]: source for source in body["_meta"]["sources"]}

    assert by_status["error"]["name"] == "Coinbase.product_stats"
    assert by_status["error"]["reason"].startswith("http_500")
    assert by_status["fallback"]["replaces"] == "Coinbase.product_stats"
    assert [w["code"] for w in body["warning"]] == ["fallback_used"]
    assert body["sections"]["btc"]["venue"] != "coinbase"


@proves("pro.captured-at")
async def test_an_answer_is_as_old_as_its_own_oldest_part_whatever_was_sold_in_between(shop):
    bodies = {}
    for round_ in range(2):
        for name in PREMIUM:
            bodies[round_, name] = (await shop.buy(name)).json()
            shop.clock.advance(7)
        shop.clock.advance(100)

    for body in bodies.values():
        fetched = [source.get("fetched_at", body["captured_at"]) for source in used(body)]
        assert body["captured_at"] == min(fetched)
        assert body["captured_at"] not in {source.get("fetched_at") for source in used(body)}
    deltas = bodies[1, "world-deltas"]
    assert bodies[0, "world-deltas"]["captured_at"] < deltas["captured_at"] <= deltas["generated_at"]


async def test_what_one_payload_fetched_the_others_take_from_the_cache(shop):
    for name in PREMIUM:
        await shop.buy(name)
    asked = [
        (url, body) for url, body, _ in shop.upstreams.bodies if "stats" not in url and "blockNumber" not in str(body)
    ]

    assert len(asked) == len(set(asked))
