"""Coinbase's statistics, candles and spot prices."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.coinbase  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated import market
from tools.sources.coinbase import (
    CANDLES_DAY,
    CANDLES_HOUR,
    PRODUCT_STATS,
    SPOT_PRICE,
    CandleQuery,
    ProductStats,
    candles_request,
    parse_candles,
    parse_spot,
    parse_stats,
    spot_request,
    stats_request,
)
from toolserver.upstream.source import SourceDown, SourceEmpty
from toolserver.world.model import World

STATS = {
    "open": "96000.1",
    "high": "98000",
    "low": "95500.5",
    "last": "97000.25",
    "volume": "8000",
    "volume_30day": "1",
}
MINUTE = CandleQuery(60)
HOUR = CandleQuery(3600)


def test_requests_name_the_product_and_the_length():
    assert stats_request("ETH-USD", {}).url == "https://api.exchange.coinbase.com/products/ETH-USD/stats"
    assert spot_request("PAXG-USD", {}).url == "https://api.coinbase.com/v2/prices/PAXG-USD/spot"
    assert candles_request(CandleQuery(86400), {}).params == {"granularity": "86400"}


def test_statistics_are_read_from_strings_and_from_numbers():
    expected = ProductStats("BTC-USD", 96000.1, 98000, 95500.5, 97000.25, 8000)
    assert parse_stats(STATS, "BTC-USD") == expected
    assert parse_stats({k: float(v) for k, v in STATS.items()}, "BTC-USD") == expected


@pytest.mark.parametrize("name", ["open", "high", "low", "last"])
def test_a_price_of_zero_is_no_price(name):
    with pytest.raises(SourceEmpty):
        parse_stats(STATS | {name: "0"}, "BTC-USD")


@pytest.mark.parametrize(
    "change",
    [
        {"last": "99000"},
        {"last": "90000"},
        {"last": "-1"},
        {"last": ""},
        {"last": None},
        {"volume": "NaN"},
        {"open": True},
    ],
)
def test_statistics_that_contradict_themselves_are_a_changed_format(change):
    with pytest.raises((ValueError, TypeError)):
        parse_stats(STATS | change, "BTC-USD")


@pytest.mark.parametrize("body", [{}, {"message": "NotFound"}, None, [], "<html>"])
def test_anything_else_than_statistics_is_a_changed_format(body):
    with pytest.raises((KeyError, TypeError)):
        parse_stats(body, "BTC-USD")


def test_recorded_candles_come_out_oldest_first_with_low_and_high_in_their_places(sample):
    found = parse_candles(json.loads(sample("coinbase/exchange-candles-60.json")), MINUTE)

    assert len(found) == 10
    assert [c.start for c in found] == sorted(c.start for c in found)
    assert found[-1].start == datetime(2018, 2, 1, 0, 9, tzinfo=UTC)
    assert found[-1][1:] == (10106.01, 10120.21, 10106, 10120.21, 2.85107455)
    assert (found[0].low, found[0].high) == (10099.98, 10099.99)


def test_candles_in_another_column_order_are_a_changed_format():
    with pytest.raises(ValueError, match="outside"):
        parse_candles([[1517443740, 100, 110, 90, 105, 1]], MINUTE)


@pytest.mark.parametrize("body", [{"message": "NotFound"}, [[1, 2]], [None], None])
def test_anything_else_than_candles_is_a_changed_format(body):
    with pytest.raises((TypeError, ValueError)):
        parse_candles(body, MINUTE)


prices = st.lists(st.floats(0.01, 1e6), min_size=4, max_size=4).map(sorted)
rows = st.tuples(st.integers(0, 4_000_000_000), prices, st.floats(0, 1e9))


@given(st.lists(rows, max_size=20))
def test_parse_never_invents_or_drops_candles(listed):
    body = [[start, p[0], p[3], p[1], p[2], volume] for start, p, volume in listed]
    found = parse_candles(body, MINUTE)
    assert sorted(c.start.timestamp() for c in found) == sorted(float(start) for start, _, _ in listed)
    assert sorted(c.volume for c in found) == sorted(volume for _, _, volume in listed)


def test_a_recorded_spot_price_parses(sample):
    spot = parse_spot(json.loads(sample("coinbase/v2-spot-ETH-USD.json")), "ETH-USD")
    assert spot == ("ETH-USD", 2723.905)


def test_the_twins_statistics_are_those_of_the_world():
    day = market.day(World(1, NOW), "BTC", "coinbase")
    stats = ask(PRODUCT_STATS, "BTC-USD")

    assert (stats.last, stats.open) == (round(day.last, 2), round(day.open, 2))
    assert (stats.high, stats.low) == (round(day.high, 2), round(day.low, 2))
    assert PRODUCT_STATS.gauge.values(stats) == {"BTC-USD": stats.last}
    assert ask(PRODUCT_STATS, "BTC-USD", form="drift") == stats


def test_the_twins_candles_and_spot_prices_are_those_of_the_world():
    world = World(1, NOW)
    hours = ask(CANDLES_HOUR, HOUR)
    assert len(hours) >= CANDLES_HOUR.least
    assert hours[-2].close == round(market.candle(world, "BTC", NOW - 3600, 3600, "coinbase").close, 2)
    assert NOW - CANDLES_HOUR.newest(hours).timestamp() <= CANDLES_HOUR.newest_max_s == 7200
    assert CANDLES_DAY.newest_max_s == 2 * 86400
    assert ask(CANDLES_HOUR, HOUR, form="drift") == hours
    assert ask(SPOT_PRICE, "PAXG-USD").price == round(market.price(world, "PAXG", venue="coinbase"), 2)


def test_the_twin_refuses_what_coinbase_refuses():
    with pytest.raises(KeyError):
        ask(PRODUCT_STATS, "BTC-USD", form="empty")
    assert ask(CANDLES_HOUR, HOUR, form="empty") == ()
    for form, word in [("limited", "http_429"), ("geo", "http_403"), ("status:503", "http_503")]:
        with pytest.raises(SourceDown) as caught:
            ask(SPOT_PRICE, "ETH-USD", form=form)
        assert caught.value.word == word
    assert fetch(World(1, NOW), stats_request("NOPE-USD", {})).status == 404
    assert fetch(World(1, NOW), candles_request(CandleQuery(7), {})).status == 400
    assert fetch(World(1, NOW), spot_request("NOPE-USD", {})).status == 404
