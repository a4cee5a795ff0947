"""Binance's 24-hour statistics and candles."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.binance  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated import market
from tools.sources.binance import (
    KLINES_DAY,
    KLINES_HOUR,
    TICKER_24H,
    TICKERS_24H,
    KlineQuery,
    klines_request,
    parse,
    parse_all,
    parse_klines,
    request,
)
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceLimited, SourceRefused
from toolserver.world.model import World

HOUR = KlineQuery("1h")
ROW = {
    "symbol": "BTCUSDT",
    "lastPrice": "97000.5",
    "priceChangePercent": "-1.250",
    "highPrice": "98000",
    "lowPrice": "95000",
    "quoteVolume": "1900000000",
    "count": 5,
    "closeTime": 1_800_000_000_000,
}


def test_requests_name_the_symbol_or_none():
    assert request("BTCUSDT", {}).params == {"symbol": "BTCUSDT"}
    assert TICKERS_24H.request.params == {}
    assert klines_request(KlineQuery("1d"), {}).params == {"symbol": "BTCUSDT", "interval": "1d", "limit": "32"}


def test_a_recorded_ticker_parses_to_its_values(sample):
    found = parse(json.loads(sample("binance/ticker-24hr-BTCUSDT.json")), "BTCUSDT")

    assert (found.last, found.high, found.low, found.change_percent) == (6705.82, 6933, 6680.1, -2.427)
    assert (found.quote_volume, found.trades) == (392659910.6266075, 554428)
    assert found.closed_at == datetime(2020, 4, 15, 22, 54, 38, 494000, UTC)


def test_a_recorded_list_keeps_every_traded_symbol(sample):
    found = parse_all(json.loads(sample("binance/ticker-24hr-all-trimmed.json")), None)
    assert [t.symbol for t in found] == ["ETHBTC", "LTCBTC", "BNBBTC", "NEOBTC", "QTUMETH", "EOSETH"]
    assert found[0].trades == 101519


def test_the_recorded_errors_are_told_apart(sample):
    geo, ban, bad = (
        json.loads(sample(f"binance/error-{name}.json")) for name in ("451-geo-block", "418-ip-ban", "400-max-interval")
    )
    for read, query in [(parse, "BTCUSDT"), (parse_all, None), (parse_klines, HOUR)]:
        with pytest.raises(SourceRefused):
            read(geo, query)
        with pytest.raises(SourceLimited):
            read(ban, query)
        with pytest.raises(SourceChanged):
            read(bad, query)


def test_a_price_of_zero_is_no_price_and_a_halted_symbol_is_not_listed():
    with pytest.raises(SourceEmpty):
        parse(ROW | {"lastPrice": "0.00000000"}, "BTCUSDT")
    halted = ROW | {"symbol": "BCCUSDT", "highPrice": "0.00000000", "lowPrice": "0.00000000"}
    assert [t.symbol for t in parse_all([halted, ROW], None)] == ["BTCUSDT"]


@pytest.mark.parametrize("body", [{}, {"lastPrice": "1"}, [], None, "<html>", ROW | {"highPrice": "1"}])
def test_anything_else_than_a_ticker_is_a_changed_format(body):
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse(body, "BTCUSDT")


def test_an_object_where_the_list_should_be_is_a_changed_format():
    with pytest.raises((KeyError, TypeError)):
        parse_all(ROW, None)


def test_recorded_candles_parse_to_their_values(sample):
    found = parse_klines(json.loads(sample("binance/klines-1h-2023.json")), HOUR)

    assert found[0].start == datetime(2022, 12, 31, 20, tzinfo=UTC)
    assert found[0][1:] == (16570.14, 16574.97, 16564.09, 16568.6, 2622.14355)
    assert [c.start for c in found] == sorted(c.start for c in found)
    assert parse_klines(json.loads(sample("binance/klines-BTCUSDT-1m.json")), HOUR)[0].start.year == 2021


@given(st.lists(st.tuples(st.text("ABCXYZ", min_size=1, max_size=9), st.floats(1e-8, 1e6)), max_size=20))
def test_parse_never_invents_or_drops_symbols(listed):
    rows = [ROW | {"symbol": s, "lastPrice": str(p), "highPrice": str(p), "lowPrice": p} for s, p in listed]
    assert [(t.symbol, t.last) for t in parse_all(rows, None)] == listed


def test_the_twins_ticker_is_that_of_the_world():
    day = market.day(World(1, NOW), "BTC", "binance")
    found = ask(TICKER_24H, "BTCUSDT")

    assert (found.last, found.high, found.low) == pytest.approx((day.last, day.high, day.low))
    assert found.change_percent == pytest.approx((day.last / day.open - 1) * 100, abs=1e-3)
    assert TICKER_24H.gauge.values(found) == {"BTC-USD": found.last}
    assert NOW - TICKER_24H.newest(found).timestamp() <= 300
    assert ask(TICKER_24H, "BTCUSDT", form="drift") == found


def test_the_twins_list_and_candles_are_those_of_the_world():
    listed = ask(TICKERS_24H)
    names = [t.symbol for t in listed]
    assert len(names) >= TICKERS_24H.least
    assert {"BTCUSDT", "USDCUSDT", "BTCUPUSDT", "ETHBTC"} <= set(names)
    assert "BCCUSDT" not in names
    assert set(TICKERS_24H.gauge.values(listed)) == {"BTC-USD", "ETH-USD"}
    assert ask(TICKERS_24H, form="drift") == listed
    hours = ask(KLINES_HOUR, HOUR)
    assert len(hours) == 32
    expected = market.candle(World(1, NOW), "BTC", NOW - 3600, 3600, "binance")
    assert hours[-2].close == pytest.approx(expected.close)
    assert ask(KLINES_HOUR, HOUR, form="drift") == hours
    assert len(ask(KLINES_DAY, KlineQuery("1d"))) >= KLINES_DAY.least
    assert (KLINES_HOUR.newest_max_s, KLINES_DAY.newest_max_s) == (7200, 172_800)


def test_the_twin_has_every_member_of_the_recorded_answers(sample):
    recorded = json.loads(sample("binance/ticker-24hr-BTCUSDT.json"))
    made = json.loads(fetch(World(1, NOW), request("BTCUSDT", {})).body)
    assert {k: type(v) for k, v in recorded.items()} == {k: type(v) for k, v in made.items()}
    candle = json.loads(sample("binance/klines-1h-2023.json"))[0]
    made = json.loads(fetch(World(1, NOW), klines_request(HOUR, {})).body)[0]
    assert [*map(type, candle)] == [*map(type, made)]


def test_the_twin_refuses_what_binance_refuses():
    for source, query in [(TICKER_24H, "BTCUSDT"), (TICKERS_24H, None), (KLINES_HOUR, HOUR)]:
        with pytest.raises(SourceRefused):
            ask(source, query, form="error200")
        for form, word in [("geo", "http_451"), ("limited", "http_418")]:
            with pytest.raises(SourceDown) as caught:
                ask(source, query, form=form)
            assert caught.value.word == word
    assert ask(TICKERS_24H, form="empty") == ask(KLINES_HOUR, HOUR, form="empty") == ()
    assert fetch(World(1, NOW), request("NOPE", {})).status == 400
