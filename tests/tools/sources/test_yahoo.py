"""Yahoo's spark and chart."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.yahoo  # noqa: F401 - serves
from tests.tools.desk import ask
from tools.parsing.stock_quotes import Symbols
from tools.simulated import stocks
from tools.sources.cnbc import INDICES
from tools.sources.yahoo import CHART, SPARK, chart_request, parse_chart, parse_spark, spark_request
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceRefused
from toolserver.world.model import World

OPEN = World(1, datetime(2027, 1, 14, 18, tzinfo=UTC).timestamp())
SOME = Symbols(("SPX", "AAPL", "BRK.B"))


def flat(**closes):
    return {symbol: {"timestamp": [1, 2, 3], "close": row, "chartPreviousClose": 1.0} for symbol, row in closes.items()}


def test_indices_and_share_classes_are_asked_for_in_their_own_spelling():
    asked = spark_request(SOME, {})

    assert asked.params == {"symbols": "^GSPC,AAPL,BRK-B", "range": "5d", "interval": "1d"}
    assert chart_request("CL=F", {}).url.endswith("/chart/CL=F")


def test_the_price_is_the_last_close_and_the_previous_one_that_before_it_nulls_left_out():
    found = parse_spark(flat(AAPL=[None, 100.0, None, 101.5, None]), Symbols(("AAPL",)))

    assert (found["AAPL"].price, found["AAPL"].previous_close) == (101.5, 100.0)


def test_the_nested_form_is_read_like_the_flat_one():
    rows = [{"symbol": "AAPL", "response": [{"meta": {}, "indicators": {"quote": [{"close": [100.0, 101.5]}]}}]}]
    nested = {"spark": {"result": rows, "error": None}}

    assert parse_spark(nested, Symbols(("AAPL",))) == parse_spark(flat(AAPL=[100.0, 101.5]), Symbols(("AAPL",)))


def test_a_symbol_without_two_closes_is_absent():
    assert parse_spark(flat(AAPL=[100.0, None]), Symbols(("AAPL", "IBM"), must_exist=False)) == {}


def test_too_few_of_existing_symbols_are_empty():
    with pytest.raises(SourceEmpty):
        parse_spark(flat(AAPL=[100.0, 101.5]), SOME)
    with pytest.raises(SourceEmpty):
        ask(SPARK, SOME, world=OPEN, form="empty")


@given(st.lists(st.none() | st.floats(0.01, 1e6), max_size=8))
def test_a_spark_never_invents_a_price(closes):
    known = [close for close in closes if close is not None]
    found = parse_spark(flat(AAPL=closes), Symbols(("AAPL",), must_exist=False))

    assert [(q.price, q.previous_close) for q in found.values()] == ([(known[-1], known[-2])] if known[1:] else [])


def test_a_recorded_refusal_is_one(sample):
    body = json.loads(sample("yahoo/error-401-invalid-crumb.json"))
    with pytest.raises(SourceRefused):
        parse_spark(body, SOME)
    with pytest.raises(SourceRefused):
        parse_chart(body, "AAPL")


def test_a_recorded_unknown_symbol_is_empty(sample):
    with pytest.raises(SourceEmpty):
        parse_chart(json.loads(sample("yahoo/error-404-unknown-symbol.json")), "NOPE")


def test_another_error_is_a_changed_source():
    with pytest.raises(SourceChanged):
        parse_chart({"chart": {"result": None, "error": {"code": "Bad Request"}}}, "AAPL")
    with pytest.raises(SourceChanged):
        parse_spark({"spark": {"result": None, "error": {"code": "Bad Request"}}}, SOME)


def test_recorded_charts_parse_to_their_values(sample):
    apple = parse_chart(json.loads(sample("yahoo/chart-AAPL-1d.json")), "AAPL")
    gold = parse_chart(json.loads(sample("yahoo/chart-GC=F-gold-futures.json")), "GC=F")

    assert (apple.price, apple.currency) == (220.003, "USD")
    assert apple.at == datetime(2025, 3, 24, 13, 51, 33, tzinfo=UTC)
    assert apple.closes == ((datetime(2022, 2, 22, 14, 30, tzinfo=UTC), 164.32000732421875),)
    assert (gold.symbol, gold.price, gold.previous_close) == ("GC=F", 2952.5, 1524.5)


def test_a_recorded_range_without_trading_has_a_price_and_no_closes(sample):
    chart = parse_chart(json.loads(sample("yahoo/chart-AAPL-empty-weekend-1m.json")), "AAPL")

    assert (chart.price, chart.closes, chart.previous_close) == (244.87, (), None)


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"chart": {"result": []}}, {"chart": {"result": [{"meta": {"regularMarketPrice": 0}}]}}],
)
def test_another_shape_is_not_read(body):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse_chart(body, "AAPL")


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_of_the_spark_agrees_with_the_world(form):
    found = ask(SPARK, Symbols((*INDICES, "AAPL", "BRK.B")), world=OPEN, form=form)

    for symbol, quote in found.items():
        seen = stocks.trade(OPEN, symbol)
        assert (quote.price, quote.previous_close) == (seen.last, seen.previous_close)


def test_unknown_symbols_are_absent_and_none_at_all_is_an_answer():
    assert ask(SPARK, Symbols(("AAPL", "NOPE"), must_exist=False), world=OPEN).keys() == {"AAPL"}
    assert ask(SPARK, Symbols(("NOPE",), must_exist=False), world=OPEN) == {}


@pytest.mark.parametrize("symbol", ["CL=F", "NG=F", "GC=F", "^VIX", "AAPL"])
def test_the_twin_of_the_chart_has_a_price_and_the_closes_before_it(symbol):
    chart = ask(CHART, symbol, world=OPEN)

    assert chart.at == OPEN.time
    assert chart.price == chart.closes[-1][1]
    assert chart.previous_close == chart.closes[-2][1]
    assert ask(CHART, symbol, world=OPEN, form="empty").price == chart.price


def test_the_twin_refuses_what_it_does_not_know():
    with pytest.raises(SourceDown):
        ask(CHART, "NOPE", world=OPEN)
