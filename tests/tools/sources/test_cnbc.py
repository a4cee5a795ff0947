"""CNBC's printed quotes."""

from datetime import UTC, datetime

import pytest

import tools.simulated.stocks  # noqa: F401 - serves
from tests.tools.desk import ask
from tools.free.stocks import DEFAULTS
from tools.parsing.stock_quotes import Symbols
from tools.simulated import stocks
from tools.sources.cnbc import QUOTES, QUOTES_ON_DEMAND, parse, request
from toolserver.upstream.source import SourceEmpty
from toolserver.world.model import World

OPEN = World(1, datetime(2027, 1, 14, 18, tzinfo=UTC).timestamp())
ALL = Symbols(DEFAULTS)
ROW = {
    "symbol": ".SPX",
    "code": "0",
    "name": "S&amp;P 500 Index",
    "last": "6,846.40",
    "change": "-121.1",
    "change_pct": "+9.99%",
    "previous_day_closing": "6,967.50",
    "last_time": "2026-10-01T12:49:01.000-0400",
    "realTime": "true",
    "curmktstatus": "REG_MKT",
}


def parsed(*rows, must_exist=False, names=("SPX", "AAPL")):
    listed = list(rows) if len(rows) != 1 else rows[0]
    return parse({"FormattedQuoteResult": {"FormattedQuote": listed}}, Symbols(names, must_exist))


def test_all_symbols_are_asked_for_at_once_and_indices_with_a_dot():
    asked = request(Symbols(("SPX", "BRK.B")), {})

    assert asked.params["symbols"] == ".SPX|BRK.B"
    assert asked.params["output"] == "json"


def test_a_row_is_read_as_it_is_printed():
    quote = parsed(ROW)["SPX"]

    assert (quote.price, quote.previous_close) == (6846.4, 6967.5)
    assert quote.name == "S&P 500 Index"
    assert quote.as_of == datetime(2026, 10, 1, 16, 49, 1, tzinfo=UTC)
    assert (quote.delayed, quote.trading) == (False, True)


def test_an_index_may_lose_its_dot():
    assert "SPX" in parsed(ROW | {"symbol": "SPX"})


@pytest.mark.parametrize(
    "row",
    [
        {"symbol": "AAPL", "code": 1},
        {"code": 1},
        ROW | {"last": "--"},
        ROW | {"last": "0.00"},
        ROW | {"previous_day_closing": "--"},
        ROW | {"symbol": "OTHER"},
    ],
    ids=["unknown", "bare code", "no price", "zero", "no close", "not asked for"],
)
def test_a_row_without_a_price_is_no_quote(row):
    assert parsed(row) == {}


def test_a_row_with_a_word_for_its_price_is_left_out():
    with pytest.raises(ValueError, match="UNCH"):
        parsed(ROW | {"last": "UNCH"})


@pytest.mark.parametrize("time", ["2026-10-01", "", None, "4:00 PM EDT", "2026-10-01Tnoon"])
def test_a_time_that_is_none_is_unknown(time):
    assert parsed(ROW | {"last_time": time})["SPX"].as_of is None


def test_optional_members_may_be_missing():
    quote = parsed({k: ROW[k] for k in ("symbol", "last", "previous_day_closing")})["SPX"]

    assert quote[3:] == (None, None, None, None)


def test_too_few_of_existing_symbols_are_empty_but_unknown_ones_of_a_caller_are_not():
    with pytest.raises(SourceEmpty):
        parsed(ROW, must_exist=True)
    assert parsed(ROW, {"symbol": "AAPL", "code": 1}).keys() == {"SPX"}
    with pytest.raises(SourceEmpty):
        ask(QUOTES, ALL, form="empty")


@pytest.mark.parametrize("body", [None, [], {}, {"FormattedQuoteResult": None}, {"FormattedQuoteResult": {}}])
def test_another_shape_is_not_read(body):
    with pytest.raises((LookupError, TypeError)):
        parse(body, ALL)


def test_a_negative_price_is_refused():
    with pytest.raises(ValueError, match="positive"):
        parsed(ROW | {"last": "-3.00"})


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_answers_the_worlds_trades(form):
    found = ask(QUOTES, ALL, world=OPEN, form=form)

    assert set(found) == set(DEFAULTS)
    for symbol, quote in found.items():
        seen = stocks.trade(OPEN, symbol)
        assert (quote.price, quote.previous_close) == (seen.last, seen.previous_close)
        assert quote.as_of.timestamp() == seen.at


def test_the_twin_knows_when_the_market_is_closed():
    weekend = World(1, datetime(2027, 1, 17, 18, tzinfo=UTC).timestamp())
    later = weekend.at(weekend.now + 7200)
    quotes = ask(QUOTES, ALL, world=weekend)

    assert quotes == ask(QUOTES, ALL, world=later)
    assert not any(quote.trading for quote in quotes.values())
    assert quotes["SPY"].as_of == datetime(2027, 1, 15, 21, tzinfo=UTC)


def test_one_symbol_of_a_caller_comes_without_its_list():
    assert ask(QUOTES_ON_DEMAND, Symbols(("IBM",), must_exist=False), world=OPEN).keys() == {"IBM"}
    assert ask(QUOTES_ON_DEMAND, Symbols(("NOPE",), must_exist=False), world=OPEN) == {}


def test_a_caller_can_cause_one_request_in_fifteen_seconds_at_most():
    assert QUOTES_ON_DEMAND.hosts.gap_s == 15
    assert QUOTES_ON_DEMAND.user_input
    assert QUOTES_ON_DEMAND.hosts.name != QUOTES.hosts.name
