"""Ten of ten payloads over REST and MCP: every field, its type, and its value as the upstreams' bodies have it."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.json_schemas import validate
from tests.requirements import named, proves
from tests.size import a_share
from tests.specified import PREMIUM
from tests.tools.premium import bodies, chain_bodies, crypto_bodies
from tests.tools.premium.shapes import FRAME, SHAPES
from tests.tools.premium.store import WORLD, Store, T, store
from tests.tools.test_all_free import agrees
from tools.simulated.headlines import headlines as told
from toolserver.registry.response_schema import answer_schema
from toolserver.world.model import ROUTES, Edits

WHOLE = {"briefing": "history=24h", "macro": "history=30d", "crypto-deep": "history=30d"}
"""The parameter that adds all there is."""

STRUCTURAL = {
    "world-deltas": {("prediction_market_update", "incomplete_window")},  # most markets say no change: no hour of ours
}


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path) as s:
        yield s


def given(name: str) -> dict[str, str]:
    return dict(part.split("=") for part in WHOLE.get(name, "").split("&") if part)


async def whole(shop: Store, name: str) -> Any:
    answer = await shop.buy(name, WHOLE.get(name, ""))
    assert answer.status_code == 200, answer.text
    return answer.json()


@proves("pro-shape.*", "pro.frame", "pro.captured-at", "answers.premium-envelope")
@pytest.mark.parametrize("name", a_share(named("pro-shape."), 3, first=2))
async def test_a_payload_has_every_documented_member_with_its_type(shop, name):
    body = await whole(shop, name)

    validate(body, FRAME)
    validate(body, SHAPES[name])
    validate(body, answer_schema(shop.service.registry[PREMIUM[name].tool], full=True))
    assert (body["endpoint"], body["stale"]) == (f"/api/pro/{name}", False)
    assert body["generated_at"] == "2027-01-15T08:00:00Z"
    used = [source for source in body["_meta"]["sources"] if source["status"] != "error"]
    assert any("fetched_at" not in source for source in used)
    assert all(source["fetched_at"] > body["captured_at"] for source in used if source.get("fetched_at"))
    assert {(w["section"], w["code"]) for w in body.get("warning", [])} == STRUCTURAL.get(name, set())
    assert shop.upstreams.unmatched == []


@proves("mcp.rest-payload", "mcp.charges", "pro.same-on-mcp")
@pytest.mark.parametrize("name", a_share(PREMIUM, 3))
async def test_over_mcp_it_is_the_same_payload_at_the_same_price(shop, name):
    row = PREMIUM[name]
    rest = await shop.buy(name, WHOLE.get(name, ""))
    told_ = await shop.tell(row.tool, given(name))
    payload = told_["structuredContent"]

    assert told_.get("isError") in (None, False)
    assert json.loads(told_["content"][0]["text"]) == payload
    note = {name: payload["_meta"].pop(name) for name in ("credits_charged", "credits_remaining", "receipt_id")}
    assert note == {name: told_["_meta"][name] for name in note}
    assert note["credits_charged"] == row.credits
    assert note["receipt_id"].startswith("rcpt_")
    assert payload == rest.json()
    assert int(rest.headers["x-credits-remaining"]) == 1000 - row.credits
    assert await shop.balance() == 1000 - 2 * row.credits


@proves("pro.values")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("briefing", bodies.briefing), ("macro", bodies.macro), ("crypto-deep", crypto_bodies.crypto_deep)],
)
async def test_every_figure_is_what_the_upstreams_said(shop, name, expected):
    body = await whole(shop, name)

    agrees(expected(shop.upstreams), body)


async def test_prices_of_coins_and_pairs_are_shown_with_the_digits_that_are_of_use(shop):
    body = await whole(shop, "crypto-deep")
    coins = {c["symbol"].upper(): c["current_price"] for c in bodies.told(shop.upstreams, "coingecko")}
    pairs = {t["symbol"]: t for t in bodies.told(shop.upstreams, "ticker/24hr")}

    for coin in body["coins_top50"]:
        assert coin["price_usd"] == pytest.approx(coins[coin["symbol"]], rel=5e-3)
    for pair in body["exchange_top20_usdt"]:
        row = pairs[pair["pair"].replace("-", "")]
        for ours, theirs in {"price": "lastPrice", "high_24h": "highPrice", "low_24h": "lowPrice"}.items():
            assert pair[ours] == pytest.approx(float(row[theirs]), rel=5e-3)
        assert pair["volume_24h"] == pytest.approx(float(row["quoteVolume"]), rel=1e-6)


@proves("deltas.merged", "deltas.severity", "pro.values")
async def test_events_of_four_sources_are_one_stream_sorted_by_time(shop):
    body = await whole(shop, "world-deltas")
    expected = bodies.world_deltas(shop.upstreams)

    found = [(e["type"], e["timestamp"], e["severity"], e["data"]["id"]) for e in body["events"]]
    assert sorted(found, key=str) == sorted(((k, bodies.iso(at), s, i) for k, at, s, i in expected), key=str)
    assert [e["timestamp"] for e in body["events"]] == sorted((e["timestamp"] for e in body["events"]), reverse=True)
    assert body["counts"] == Counter(kind for kind, *_ in expected)
    assert len(body["counts"]) == 4
    assert (body["since"], body["since_clamped"]) == (bodies.iso(T - 3600), False)
    assert body["sample_size"]["events_in_rolling_hour"] == len(expected)


@proves("correlation.scipy", "correlation.matrix", "pro.values")
async def test_correlations_are_scipys_on_the_published_figures(shop):
    body = await whole(shop, "correlation-matrix")
    expected = bodies.correlations(shop.upstreams)

    assert len(body["pairs"]) == len(expected) == 6
    for pair in body["pairs"]:
        r, n = expected[frozenset((pair["a"], pair["b"]))]
        assert pair["pearson_r"] == pytest.approx(r, abs=1e-4)
        assert pair["n_observations"] == n
        assert body["matrix"][pair["a"]][pair["b"]] == body["matrix"][pair["b"]][pair["a"]] == pair["pearson_r"]
    sizes = [abs(pair["pearson_r"]) for pair in body["pairs"]]
    assert sizes == sorted(sizes, reverse=True)
    assert {body["matrix"][asset["symbol"]][asset["symbol"]] for asset in body["assets"]} == {1.0}
    assert {a["symbol"]: a["asset_class"] for a in body["assets"]} == {
        "OIL_WTI": "commodity",
        "TREASURY_10Y": "rates",
        "TREASURY_2Y": "rates",
        "USD_INDEX": "fx",
    }


@proves("flows.sums", "pro.values")
async def test_flows_are_the_sums_of_the_blocks(shop):
    body = await whole(shop, "exchange-flows")
    expected = chain_bodies.exchange_flows(shop.upstreams)
    by_exchange = expected.pop("by_exchange")

    agrees(expected, body)
    for flow in body["flows_by_exchange"]:
        came, went, ins, outs = by_exchange.pop(flow["exchange"])
        assert (flow["inflow_eth"], flow["outflow_eth"]) == (pytest.approx(came), pytest.approx(went))
        assert (flow["inflow_count"], flow["outflow_count"]) == (ins, outs)
        assert flow["net_eth"] == pytest.approx(came - went, abs=2e-4)
    assert by_exchange == {}
    assert all(each["value_eth"] >= 5 and each["direction"] != "internal" for each in body["recent_transfers"])


@proves("whales.thresholds", "pro.values")
async def test_whales_are_the_large_ones_of_both_chains(shop):
    events = [{"kind": "btc_tx", "value_btc": 77, "change_btc": 5, "at": T - 3}]
    shop.upstreams.state.edits = Edits(events=events)
    body = await whole(shop, "whales")

    agrees(chain_bodies.whales(shop.upstreams), body)
    assert {whale["value_btc"] for whale in body["btc_whales_unconfirmed"]} >= {77}
    assert {whale["confirmed"] for whale in body["btc_whales_unconfirmed"]} == {False}
    assert {whale["confirmed"] for whale in body["eth_whales_latest_block"]} == {True}
    assert body["eth_blocks_scanned"] == chain_bodies.scanned(shop.upstreams)
    assert (body["thresholds"]["btc_min_btc"], body["thresholds"]["eth_min_eth"]) == (10, 100)


@proves("velocity.stars-per-day", "pro.values")
async def test_repositories_are_githubs_with_stars_by_day(shop):
    body = await whole(shop, "code-host-velocity")
    searched = {
        s["section"]: bodies.seconds(s.get("fetched_at", body["captured_at"])) for s in body["_meta"]["sources"]
    }
    expected = bodies.velocity(shop.upstreams, searched["trending_repos"])
    languages, topics, stars = (expected.pop(name) for name in ("languages", "topics", "stars"))

    agrees(expected, body)
    assert {row["language"]: row["count"] for row in body["by_language"]} == languages
    assert [row["count"] for row in body["by_topic"]] == topics
    ai = sum(repo["is_ai_ml"] for repo in body["trending_repos"])
    agrees(
        {
            "trending_count": len(expected["trending_repos"]),
            "total_stars_in_trending": stars,
            "ai_ml_in_trending_count": ai,
            "ai_ml_share_percent": round(100 * ai / len(expected["trending_repos"]), 1),
        },
        body["aggregate"],
    )


@proves("sentiment.mentions", "pro.values")
async def test_sentiment_is_what_the_headlines_name(shop):
    shop.down("HackerNewsAlgolia.stories_24h")  # of its titles the world keeps no list of names
    body = await whole(shop, "sentiment")
    day = [h for h in told(WORLD) if h.dated and h.at > T - 86400]
    first = {h.origin: h for h in sorted(day, key=lambda h: h.at, reverse=True)}
    mentions = Counter(symbol for h in first.values() for symbol in h.symbols)

    assert body["sample_size"]["headlines_scanned"] == len(first)
    assert body["sample_size"]["tickers_with_mentions"] == len(mentions)
    assert {t["symbol"]: t["mention_count_24h"] for t in body["trending"]}.items() <= mentions.items()
    for ticker in body["trending"]:
        scores = [h.score for h in first.values() if ticker["symbol"] in h.symbols]
        assert ticker["sentiment_score"] == pytest.approx(sum(scores) / len(scores), abs=0.0011)
    mood = ROUTES.expectations["fear-greed"](WORLD, {})
    assert body["market_indices"]["crypto_fear_greed"]["value"] == mood["value"]
    vix = bodies.quote(next(row for row in bodies.quoted(shop.upstreams) if "VIX" in row["symbol"]))
    assert body["market_indices"]["stocks_vix"]["value"] == vix["price"]
    assert body["market_indices"]["stocks_vix"]["change_percent"] == vix["change_percent"]
    known = {m["question"]: (both[0], round(float(m["volume24hr"]), 2)) for m, both in bodies.traded(shop.upstreams)}
    for signal in body["prediction_markets_signals"]:
        assert (signal["yes_probability"], signal["volume_24h"]) == known[signal["question"]]


@proves("context.values", "pro.values")
async def test_the_context_is_the_world_and_the_text_says_the_same(shop):
    body = await whole(shop, "agent-context")
    context, text = body["context"], body["system_prompt"]
    expected = ROUTES.expectations["pro/agent-context"](WORLD, {})

    assert context["infrastructure"]["all_operational"] is expected.pop("all_operational")
    agrees(expected, context)
    assert context["datetime"] | {"human_readable_utc": ""} == {
        "iso": "2027-01-15T08:00:00Z",
        "unix_ms": T * 1000,
        "weekday": "Friday",
        "human_readable_utc": "",
    }
    assert set(context["infrastructure"]["details"].values()) == {"operational"}
    for story in context["world_events"]["news_front_page_top5"][:3]:
        assert story["title"][:80] in text
    assert "navailable" not in text
    assert 300 <= int(body["notes"]["approx_tokens"]) <= 400
    assert max(map(len, text.splitlines())) <= 160
