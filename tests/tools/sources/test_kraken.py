"""Kraken's tickers and candles."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.kraken  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated import market
from tools.sources.kraken import (
    ASSET_PAIRS,
    OHLC_DAY,
    OHLC_HOUR,
    TICKER,
    TICKER_ALL,
    OhlcQuery,
    ohlc_request,
    parse,
    parse_all,
    parse_ohlc,
    parse_pairs,
    request,
)
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceLimited, SourceRefused
from toolserver.world.model import World

HOUR = OhlcQuery(60)
ROW = {"c": ["100.5", "1"], "v": ["1", "20"], "p": ["100", "101"], "t": [3, 44], "l": ["99", "98"], "h": ["101", "103"]}


def test_requests_name_the_pair_and_the_interval():
    assert request("XBTUSD", {}).params == {"pair": "XBTUSD"}
    assert TICKER_ALL.request.params == {}
    assert ohlc_request(OhlcQuery(1440), {}).params == {"pair": "XBTUSD", "interval": "1440"}


def test_a_recorded_ticker_parses_whatever_its_pair_is_called(sample):
    found = parse(json.loads(sample("kraken/ticker-XXBTZUSD.json")), "XBTUSD")

    assert found.name == "XXBTZUSD"
    assert (found.last, found.high, found.low) == (82998.9, 84338.1, 82566.4)
    assert (found.volume, found.vwap, found.trades) == (2862.86180275, 83278.12284, 153218)
    assert found.quote_volume == pytest.approx(238_413_757, abs=1)
    tether = parse(json.loads(sample("kraken/ticker-XBTUSDT.json")), "XBTUSDT")
    assert (tether.name, tether.last, tether.trades) == ("XBTUSDT", 105899.4, 3276)


def test_the_recorded_error_with_status_200_is_a_limit(sample):
    body = json.loads(sample("kraken/error-200-too-many-requests.json"))
    for read, query in [(parse, "XBTUSD"), (parse_all, None), (parse_ohlc, HOUR)]:
        with pytest.raises(SourceLimited):
            read(body, query)


def test_other_errors_with_status_200_are_told_apart():
    with pytest.raises(SourceChanged):
        parse({"error": ["EQuery:Unknown asset pair"]}, "XBTUSD")
    with pytest.raises(SourceRefused):
        parse({"error": ["EService:Unavailable"]}, "XBTUSD")


def test_another_pair_than_the_one_asked_for_is_not_taken_for_it():
    with pytest.raises(SourceChanged):
        parse({"error": [], "result": {"XETHZUSD": ROW}}, "XBTUSD")


@pytest.mark.parametrize("change", [{"c": ["0", "1"]}, {"l": ["0", "0.0"]}])
def test_a_price_of_zero_is_no_price(change):
    with pytest.raises(SourceEmpty):
        parse({"error": [], "result": {"XXBTZUSD": ROW | change}}, "XBTUSD")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"error": []},
        {"error": [], "result": {"XXBTZUSD": {}}},
        {"error": [], "result": {"XXBTZUSD": ROW | {"c": []}}},
    ],
)
def test_a_missing_member_is_a_changed_format(body):
    with pytest.raises((KeyError, IndexError)):
        parse(body, "XBTUSD")


@pytest.mark.parametrize("change", [{"c": ["200", "1"]}, {"c": ["inf", "1"]}, {"p": ["1", "-5"]}])
def test_a_ticker_that_contradicts_itself_is_a_changed_format(change):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        parse({"error": [], "result": {"XXBTZUSD": ROW | change}}, "XBTUSD")


def pairs(**rows):
    return parse_pairs({"error": [], "result": rows}, None)


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("XXBTZUSD", {"wsname": "XBT/USD", "base": "XXBT", "quote": "ZUSD"}, ("BTC", "USD")),
        ("XBTPYUSD", {"wsname": "XBT/PYUSD", "base": "XXBT", "quote": "PYUSD"}, ("BTC", "PYUSD")),
        ("MONAUSD", {"wsname": "MON/AUSD", "base": "MON", "quote": "AUSD"}, ("MON", "AUSD")),
        ("XRPRLUSD", {"wsname": "XRP/RLUSD", "base": "XXRP", "quote": "RLUSD"}, ("XRP", "RLUSD")),
        ("XTZUSD", {"wsname": "XTZ/USD", "base": "XTZ", "quote": "ZUSD"}, ("XTZ", "USD")),
        ("XDGUSD", {"wsname": "XDG/USD", "base": "XXDG", "quote": "ZUSD"}, ("DOGE", "USD")),
        ("USDTZUSD", {"base": "USDT", "quote": "ZUSD"}, ("USDT", "USD")),
        ("XXBTZEUR", {"base": "XXBT", "quote": "ZEUR"}, ("BTC", "EUR")),
        ("ETHPYUSD", {"wsname": None, "base": "XETH", "quote": "PYUSD"}, ("ETH", "PYUSD")),
        ("ZKUSD", {"base": "ZK", "quote": "ZUSD"}, ("ZK", "USD")),
        ("XXBTZUSD.d", {"altname": "XBTUSD.d", "base": "XXBT", "quote": "ZUSD"}, ("BTC", "USD")),
        ("ETHXBT", {"base": "XETH", "quote": "XXBT"}, ("ETH", "BTC")),
    ],
)
def test_what_a_pair_trades_is_read_from_its_fields_and_not_from_its_name(name, row, expected):
    assert pairs(**{name: row}) == {name: expected}  # those of 2019 had no wsname, and dark pools another name


@pytest.mark.parametrize(
    "row", [{}, {"wsname": "XBTUSD"}, {"base": "XXBT"}, {"wsname": "/USD"}, {"base": "", "quote": "ZUSD"}]
)
def test_a_pair_that_does_not_say_what_it_trades_is_left_out(row):
    sound = {f"{n}USD": {"wsname": f"{n}/USD"} for n in "ABCD"}
    assert pairs(**sound, ODD=row).keys() == sound.keys()


def test_the_list_keeps_all_pairs_but_the_dead_ones():
    dead = ROW | {"c": ["0.00000", "0"]}
    body = {"error": [], "result": {"XXBTZUSD": ROW, "XBTUSDT": ROW, "XXBTZEUR": ROW, "GONEUSD": dead}}
    assert [ticker.name for ticker in parse_all(body, None)] == ["XXBTZUSD", "XBTUSDT", "XXBTZEUR"]


def test_recorded_candles_parse_and_the_scalar_beside_them_is_no_candle(sample):
    body = json.loads(sample("kraken/ohlc-XBTUSDT-1m.json"))
    found = parse_ohlc(body, HOUR)

    assert len(found) == len(body["result"]["XBTUSDT"])
    assert found[0].start == datetime(2025, 11, 10, 12, 17, tzinfo=UTC)
    assert (found[0].close, found[-1].close, found[0].volume) == (106038.2, 105899.4, 0)


def test_an_answer_without_rows_is_empty():
    with pytest.raises(SourceEmpty):
        parse_ohlc({"error": [], "result": {"last": 1}}, HOUR)


prices = st.lists(st.floats(0.01, 1e6), min_size=4, max_size=4).map(sorted)


@given(st.lists(st.tuples(st.integers(0, 4_000_000_000), prices), min_size=1, max_size=20), st.booleans())
def test_parse_never_invents_or_drops_candles(listed, as_text):
    write = str if as_text else float
    rows = [[at, *map(write, (p[1], p[3], p[0], p[2], p[1])), "1.5", 3] for at, p in listed]
    found = parse_ohlc({"error": [], "result": {"last": 5, "XXBTZUSD": rows}}, HOUR)
    assert [(c.start.timestamp(), c.close) for c in found] == [(at, p[2]) for at, p in listed]


def test_the_twins_ticker_is_that_of_the_world():
    day = market.day(World(1, NOW), "BTC", "kraken")
    found = ask(TICKER, "XBTUSD")

    assert (found.last, found.high, found.low) == pytest.approx((day.last, day.high, day.low), abs=1e-4)
    assert TICKER.gauge.values(found) == {"BTC-USD": found.last}
    assert ask(TICKER, "XBTUSD", form="drift") == found
    assert set(TICKER.gauge.values(ask(TICKER, "PAXGUSD"))) == {"PAXG-USD"}


def test_the_twins_list_and_candles_are_those_of_the_world():
    world = World(1, NOW)
    listed = ask(TICKER_ALL)
    assert len(listed) >= TICKER_ALL.least
    named = ask(ASSET_PAIRS)
    assert {ticker.name for ticker in listed} == named.keys()
    assert {"USD", "USDT", "USDC", "PYUSD", "AUSD", "RLUSD", "EUR", "BTC"} <= {pair.quote for pair in named.values()}
    assert len(set(named.values())) == len(named)
    assert named["XBTPYUSD"] == ("BTC", "PYUSD")
    assert ask(ASSET_PAIRS, form="drift") == named
    assert set(TICKER_ALL.gauge.values(listed)) == {"BTC-USD", "ETH-USD"}
    assert ask(TICKER_ALL, form="drift") == listed
    hours = ask(OHLC_HOUR, HOUR)
    expected = market.candle(world, "BTC", NOW - 86400, 3600, "kraken")
    assert [c.close for c in hours if c.start.timestamp() == NOW - 86400] == [round(expected.close, 1)]
    assert NOW - OHLC_HOUR.newest(hours).timestamp() <= OHLC_HOUR.newest_max_s
    assert len(ask(OHLC_DAY, OhlcQuery(1440))) >= OHLC_DAY.least
    assert [c.start for c in ask(OHLC_HOUR, HOUR, form="drift")] == [c.start for c in hours]


@pytest.mark.parametrize(("asset", "name", "times"), [("BTC", "XXBTZUSD", 9), ("ETH", "XETHZUSD", 18)])
def test_the_twin_trades_as_much_more_in_dollars_than_in_tether_as_kraken(asset, name, times):
    volumes = {ticker.name: ticker.volume for ticker in ask(TICKER_ALL)}
    tether = volumes["XBTUSDT" if asset == "BTC" else "ETHUSDT"]
    assert volumes[name] / tether == pytest.approx(times)
    euros = ask(TICKER, "XXBTZEUR")
    assert euros.last < ask(TICKER, "XBTUSD").last


def test_the_twin_has_every_member_of_the_recorded_ticker(sample):
    recorded = json.loads(sample("kraken/ticker-XXBTZUSD.json"))["result"]["XXBTZUSD"]
    made = json.loads(fetch(World(1, NOW), request("XBTUSD", {})).body)["result"]["XXBTZUSD"]
    assert recorded.keys() == made.keys()
    assert {k: [*map(type, v)] for k, v in recorded.items()} == {k: [*map(type, v)] for k, v in made.items()}


def test_the_twin_refuses_what_kraken_refuses():
    for form, error in [("error200", SourceLimited), ("empty", SourceEmpty), ("status:503", SourceDown)]:
        for source, query in [(TICKER, "XBTUSD"), (OHLC_HOUR, HOUR)]:
            with pytest.raises(error):
                ask(source, query, form=form)
    with pytest.raises(SourceChanged):
        ask(TICKER, "NOPEUSD")
