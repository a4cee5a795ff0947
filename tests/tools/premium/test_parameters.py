"""include, history, since and coins: what they add, what they are refused for, and that a refusal costs nothing."""

import json

import pytest

from tests.requirements import proves
from tests.served import documents
from tests.size import a_share
from tests.specified import PREMIUM
from tests.tools.premium.bodies import iso
from tests.tools.premium.store import FUNDS, T, store

HOSTS = {
    "btc": {"api.exchange.coinbase.com"},
    "fear-greed": {"api.alternative.me"},
    "earthquakes": {"earthquake.usgs.gov"},
    "tech-news": {"hacker-news.firebaseio.com", "hn.algolia.com"},
    "humans-in-space": {"ll.thespacedevs.com", "corquaid.github.io"},
    "predictions": {"gamma-api.polymarket.com"},
}


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


@proves("charge.arguments-first", "errors.enums", "errors.invalid_arguments")
@pytest.mark.parametrize(("name", "query"), a_share(((name, q) for name, row in PREMIUM.items() for q in row.bad), 3))
async def test_what_is_not_in_the_list_is_named_costs_nothing_and_asks_nobody(shop, name, query):
    refused = await shop.buy(name, query)
    argument = query.partition("=")[0]
    twin = await shop.tell(PREMIUM[name].tool, {argument: query.partition("=")[2]})

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_arguments")
    assert [error["loc"] for error in refused.json()["errors"]] == [argument]
    assert twin["isError"] is True
    assert json.loads(twin["content"][0]["text"])["error"] == "invalid_arguments"
    assert await shop.balance() == FUNDS
    assert (shop.upstreams.bodies, await shop.uncharged()) == ([], {})


@pytest.mark.parametrize(("name", "query"), a_share(((name, q) for name, row in PREMIUM.items() for q in row.good), 3))
async def test_what_is_in_the_list_is_taken(shop, name, query):
    assert (await shop.buy(name, query)).status_code == 200


@pytest.mark.parametrize("name", PREMIUM)
def test_parameters_are_described_as_they_are(name):
    described = json.loads(documents()["/openapi.json"].body)["paths"][f"/api/pro/{name}"]["get"]
    named = [p for p in described["parameters"] if p.get("in") == "query"]

    assert tuple(p["name"] for p in named if p["name"] != "limit") == PREMIUM[name].parameters
    assert not any(p["required"] for p in named)
    assert described["x-credits"] == PREMIUM[name].credits


async def test_an_unknown_name_is_refused_and_costs_nothing(shop):
    refused = await shop.buy("briefing", "colour=blue")

    assert refused.status_code == 400
    assert refused.json()["valid_arguments"] == ["include", "history"]
    assert "x-service-receipt" not in refused.headers


@proves("pro.include")
@pytest.mark.parametrize("name", HOSTS)
async def test_a_section_asked_for_alone_stands_alone_and_only_its_sources_are_asked(shop, name):
    body = (await shop.buy("briefing", f"include={name}")).json()

    assert list(body["sections"]) == [name.replace("-", "_")]
    assert "series" not in body
    assert {url.partition("/")[0] for url, _, _ in shop.upstreams.bodies} == HOSTS[name]
    assert {source["section"] for source in body["_meta"]["sources"]} == {f"sections.{name.replace('-', '_')}"}


@proves("pro.include")
async def test_order_case_and_repetition_make_no_other_answer(shop):
    one = await shop.buy("briefing", "include=predictions,btc")
    other = await shop.buy("briefing", "include=BTC,predictions,btc")

    assert one.content == other.content
    assert list(one.json()["sections"]) == ["btc", "predictions"]


@proves("pro.history")
@pytest.mark.parametrize(
    ("name", "query", "length"), [("briefing", "24h", 24), ("crypto-deep", "30d", 30), ("macro", "30d", 30)]
)
async def test_series_are_there_only_when_asked_for_and_then_whole_and_ascending(shop, name, query, length):
    without = (await shop.buy(name)).json()
    asked = len(shop.upstreams.bodies)
    body = (await shop.buy(name, f"history={query}")).json()

    assert '"series"' not in json.dumps({k: v for k, v in without.items() if k not in ("_meta", "notes")})
    assert "history" in body["notes"]
    assert "history" not in without["notes"]
    found = list(series_of(body))
    assert len(found) == {"briefing": 1, "crypto-deep": 1, "macro": 9}[name]
    for series in found:
        moments = [point.get("ts", point.get("date")) for point in series]
        assert len(moments) == length
        assert moments == sorted(set(moments))
    more = 1 if name == "crypto-deep" else 0  # the others' series are in what they read anyway
    assert len(shop.upstreams.bodies) - asked == more


def series_of(body):
    """Every series of a payload."""
    if "series" in body:
        yield from body["series"].values()
        return
    for figure in body["economic"].values():
        yield figure["series"]
    yield from body["forex"]["series"].values()


async def test_history_is_given_without_bitcoin_too(shop):
    body = (await shop.buy("briefing", "include=fear-greed&history=24h")).json()

    assert list(body["sections"]) == ["fear_greed"]
    assert len(body["series"]["btc_24h"]) == 24


@proves("deltas.since")
@pytest.mark.parametrize(
    ("given", "since", "clamped"),
    [
        ("", T - 3600, False),
        (iso(T - 1800), T - 1800, False),
        (iso(T - 3600), T - 3600, False),
        (iso(T - 3601), T - 3600, True),
        ("1970-01-01T00:00:00Z", T - 3600, True),
        ("2027-01-15T09:30:00%2B02:00", T - 1800, False),
        ("2027-01-14T23:30:00-08:00", T - 1800, False),
        ("2027-01-15T07:30:00.750Z", T - 1800, False),
        (iso(T + 59), T, False),
        ("2027-01-15", T - 3600, True),
        ("2027-01-15T07:30:00", T - 1800, False),
    ],
)
async def test_since_reaches_back_an_hour_at_most_and_says_when_it_was_moved(shop, given, since, clamped):
    body = (await shop.buy("world-deltas", f"since={given}" if given else "")).json()

    assert (body["since"], body["since_clamped"]) == (iso(since), clamped)
    assert all(event["timestamp"] > iso(since) for event in body["events"])
    assert body["sample_size"]["events_after_since_filter"] == len(body["events"]) == sum(body["counts"].values())


@proves("deltas.since")
async def test_since_only_filters_the_same_hour(shop):
    whole = (await shop.buy("world-deltas")).json()
    asked = len(shop.upstreams.bodies)
    for minutes in (50, 30, 5):
        since = iso(T - 60 * minutes)
        part = (await shop.buy("world-deltas", f"since={since}")).json()
        assert part["events"] == [event for event in whole["events"] if event["timestamp"] > since]
    assert len(shop.upstreams.bodies) == asked


@proves("deltas.since")
@pytest.mark.parametrize(
    "given", [iso(T + 62), "2027-01-16", "2027-01-15T08:30:00", "yesterday", "1800000000", "2027-13-01T00:00:00Z", "'"]
)
async def test_a_since_ahead_of_us_or_malformed_is_refused_and_free(shop, given):
    refused = await shop.buy("world-deltas", f"since={given}")

    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (400, "since")
    assert await shop.balance() == FUNDS
    assert await shop.uncharged() == {}


async def test_coins_pick_from_both_lists(shop):
    body = (await shop.buy("crypto-deep", "coins=sol,BTC,nosuch")).json()

    assert {coin["symbol"] for coin in body["coins_top50"]} == {"BTC", "SOL"}
    assert {pair["pair"] for pair in body["exchange_top20_usdt"]} == {"BTC-USDT", "SOL-USDT"}
    assert [(w["code"], w["message"]) for w in body["warning"]] == [("missing_symbols", "In neither list: NOSUCH.")]
