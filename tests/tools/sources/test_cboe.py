"""Cboe's delayed quotes and the VIX history."""

import json
from datetime import UTC, date, datetime

import pytest

import tools.simulated.cboe  # noqa: F401 - serves
from tests.tools.desk import NOW, ask
from tools.simulated import stocks
from tools.sources.cboe import DELAYED_QUOTE, VIX_HISTORY, parse_history, parse_quote, quote_request
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

OPEN = World(1, datetime(2027, 1, 14, 18, tzinfo=UTC).timestamp())
DATA = {
    "symbol": "^VIX",
    "current_price": 24.64,
    "price_change": -1.44,
    "prev_day_close": 24.64,
    "last_trade_time": "2022-07-08T15:33:17",
}


def body(**changed):
    return json.dumps({"timestamp": "2022-07-08 19:48:17", "data": DATA | changed, "symbol": "_VIX"}).encode()


def test_indices_have_their_own_spelling():
    assert quote_request("SPX", {}).url.endswith("/quotes/_SPX.json")
    assert quote_request("AAPL", {}).url.endswith("/quotes/AAPL.json")


def test_the_previous_close_follows_from_the_change_and_the_time_is_new_yorks():
    quote = parse_quote(body(), "VIX")

    assert quote.price == 24.64
    assert quote.previous_close == pytest.approx(26.08)
    assert quote.as_of == datetime(2022, 7, 8, 19, 33, 17, tzinfo=UTC)
    assert quote.delayed is True


def test_the_dow_is_a_hundred_times_its_option_index():
    quote = parse_quote(body(current_price=472.0, price_change=2.0), "DJI")

    assert (quote.price, quote.previous_close) == (47200.0, 47000.0)


def test_forbidden_means_unknown():
    assert parse_quote(b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "NOPE") is None
    assert ask(DELAYED_QUOTE, "NOPE", world=OPEN) is None


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"<html>blocked</html>",
        b"{}",
        body(current_price=0),
        body(current_price=None),
        body(price_change=30),
        body()[:60],
    ],
)
def test_another_shape_is_not_read(broken):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse_quote(broken, "VIX")


@pytest.mark.parametrize("time", [None, "", "noon"])
def test_the_time_is_optional(time):
    assert parse_quote(body(last_trade_time=time), "VIX").as_of is None


@pytest.mark.parametrize("symbol", ["AAPL", "SPX", "DJI", "RUT", "VIX", "BRK.B"])
def test_the_twin_answers_the_worlds_trades_of_a_quarter_of_an_hour_ago(symbol):
    quote, seen = ask(DELAYED_QUOTE, symbol, world=OPEN), stocks.trade(OPEN.at(OPEN.now - 900), symbol)

    assert quote.price == pytest.approx(seen.last, abs=0.01)
    assert quote.previous_close == pytest.approx(seen.previous_close, abs=0.02)
    assert quote.as_of.timestamp() == seen.at


def test_after_the_close_the_change_is_still_that_of_the_day():
    world = World(1, datetime(2027, 1, 15, 3, tzinfo=UTC).timestamp())
    quote = ask(DELAYED_QUOTE, "AAPL", world=world)

    assert quote.previous_close == pytest.approx(stocks.trade(world, "AAPL").previous_close, abs=0.01)
    assert quote.previous_close != quote.price


def test_a_recorded_history_parses_with_iso_dates(sample):
    found = parse_history(sample("cboe/vix-daily-tail250.csv").decode(), None)

    assert len(found) == 250
    assert found[0] == (date(2025, 8, 5), 17.85)
    assert found[-1] == (date(2026, 7, 23), 18.70)


def test_a_history_cut_inside_its_last_number_is_not_read(sample):
    text = sample("cboe/vix-daily-tail250.csv").decode()
    for cut in (text[:-4], text[:-12], text.replace("CLOSE", "LAST"), ""):
        with pytest.raises(SourceChanged):
            parse_history(cut, None)


def test_only_the_newest_rows_of_a_long_history_are_read():
    rows = [f"0{1 + n % 9}/0{1 + n // 9 % 9}/{1990 + n // 81},17,18,16,{17 + n / 1000}" for n in range(900)]
    found = parse_history("DATE,OPEN,HIGH,LOW,CLOSE\n" + "\n".join(rows) + "\n", None)

    assert len(found) == 500


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_of_the_history_is_the_worlds_close_of_each_session(form):
    found = ask(VIX_HISTORY, form=form)

    assert found[-1].date == date(2027, 1, 14)
    assert found[-1].value == stocks.trade(World(1, NOW), "VIX").last
    assert all(12 <= value <= 35 for _, value in found)
    assert date(2026, 12, 25) not in dict(found)
    assert ask(VIX_HISTORY, form="empty") == ()
