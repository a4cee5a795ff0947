"""CoinGecko's market list."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.coingecko  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.coins import by_symbol
from tools.simulated.market import DAY, change_percent, coins, price
from tools.sources.coingecko import COINS_MARKETS, parse, request
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError, SourceLimited
from toolserver.world.model import World

BITCOIN = {"symbol": "btc", "name": "Bitcoin", "current_price": 97000}
numbers = st.floats(1e-9, 1e6) | st.integers(1, 10**6)


def test_the_hundred_largest_are_asked_for_and_a_key_goes_into_the_header():
    asked = request(None, {"COINGECKO_API_KEY": "secret"})
    assert asked.headers == {"x-cg-demo-api-key": "secret"}
    assert "secret" not in asked.url + str(asked.params)
    assert asked.params["per_page"] == "100"
    assert request(None, {}).headers == {}


def test_a_recorded_list_parses_to_its_values(sample):
    listed = parse(json.loads(sample("coingecko/markets-top20-24h-7d.json")), None)

    assert [c.symbol for c in listed[:3]] == ["BTC", "ETH", "USDT"]
    assert len(listed) == 20
    bitcoin = listed[0]
    assert (bitcoin.price_usd, bitcoin.rank, bitcoin.market_cap_usd) == (64159, 1, 1286778466527)
    assert bitcoin.change_24h_percent == pytest.approx(-0.33405, abs=1e-5)
    assert bitcoin.change_7d_percent == pytest.approx(2.60198, abs=1e-5)
    assert bitcoin.change_1h_percent is None
    assert (bitcoin.high_24h, bitcoin.low_24h) == (64554, 63672)
    assert bitcoin.updated_at == datetime(2026, 7, 11, 9, 45, 1, 651000, UTC)
    assert bitcoin.image.startswith("https://coin-images.coingecko.com/")


def test_recorded_lists_of_other_years_parse_too(sample):
    old = parse(json.loads(sample("coingecko/markets-btc-usd.json")), None)[0]
    assert (old.price_usd, old.change_24h_percent, old.change_7d_percent) == (49053, -4.37931, None)
    official = parse(json.loads(sample("coingecko/markets-official-oas.json")), None)[0]
    assert official.change_1h_percent == pytest.approx(0.58234, abs=1e-5)


def test_an_object_where_the_list_should_be_is_the_quota_text(sample):
    with pytest.raises(SourceLimited):
        parse(json.loads(sample("coingecko/error-429-rate-limit.json")), None)
    with pytest.raises(SourceChanged):
        parse({"error": "coin not found"}, None)


@pytest.mark.parametrize("rows", [[], [BITCOIN | {"symbol": "eth"}], [BITCOIN | {"current_price": None}]])
def test_a_list_without_bitcoin_is_empty(rows):
    with pytest.raises(SourceEmpty):
        parse(rows, None)


@pytest.mark.parametrize("row", [{"symbol": "eth"}, {**BITCOIN, "symbol": None}, {**BITCOIN, "name": 7}, 7])
def test_a_row_without_what_a_row_must_have_is_left_out(row):
    assert parse([BITCOIN, row], None) == parse([BITCOIN], None)
    with pytest.raises(SourceChanged, match="4 of 5 rows"):
        parse([BITCOIN, row, row, row, row], None)


@pytest.mark.parametrize("body", [None, {}, "<html>", 7, [None], {"data": None}])
def test_another_body_is_never_read_as_coins(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


def test_a_coin_without_a_price_is_left_out_and_a_bad_extra_is_null():
    unpriced = {"symbol": "old", "name": "Old", "current_price": None}
    odd = BITCOIN | {"market_cap": "?", "high_24h": {}, "image": "javascript:alert(1)", "last_updated": "soon"}
    (bitcoin,) = parse([odd, unpriced], None)
    assert (bitcoin.market_cap_usd, bitcoin.high_24h, bitcoin.image, bitcoin.updated_at) == (None, None, None, None)


@given(st.lists(st.tuples(st.text("abcXYZ123", min_size=1, max_size=8), numbers), max_size=30))
def test_parse_never_invents_or_drops_coins(rows):
    body = [BITCOIN, *({"symbol": s, "name": s, "current_price": p, "market_cap_rank": None} for s, p in rows)]
    listed = parse(body, None)
    assert [(c.symbol, c.price_usd) for c in listed[1:]] == [(s.upper(), float(p)) for s, p in rows]


def test_the_twin_lists_what_the_world_holds():
    world = World(1, NOW)
    listed = ask(COINS_MARKETS)

    assert len(listed) == 100
    assert [c.symbol for c in listed] == [c.symbol for c in coins()]
    bitcoin = by_symbol(listed, "BTC")
    assert bitcoin.price_usd == pytest.approx(price(world, "BTC"), rel=0.002)
    assert bitcoin.change_24h_percent == pytest.approx(change_percent(world, "BTC", DAY))
    assert bitcoin.low_24h <= bitcoin.price_usd <= bitcoin.high_24h
    assert 0 <= NOW - COINS_MARKETS.newest(listed).timestamp() <= COINS_MARKETS.newest_max_s
    assert set(COINS_MARKETS.gauge.values(listed)) == {"BTC-USD", "ETH-USD"}


def test_the_twin_has_every_member_of_the_recorded_list(sample):
    recorded = json.loads(sample("coingecko/markets-top20-24h-7d.json"))[0]
    made = json.loads(fetch(World(1, NOW), request(None, {})).body)[0]
    assert recorded.keys() <= made.keys()


@pytest.mark.parametrize(
    ("form", "error"), [("empty", SourceEmpty), ("error200", SourceLimited), ("limited", SourceDown)]
)
def test_the_twins_faults_are_errors(form, error):
    with pytest.raises(error):
        ask(COINS_MARKETS, form=form)


def test_the_drifted_form_is_read_with_nulls():
    listed = ask(COINS_MARKETS, form="drift")
    assert len(listed) == 100
    assert by_symbol(listed, "WBTC").rank is None
    assert listed[0].high_24h is None
