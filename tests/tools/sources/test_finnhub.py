"""Finnhub's quotes."""

import json
from datetime import UTC, datetime

import pytest

import tools.simulated.finnhub  # noqa: F401 - serves
from tests.tools.desk import ask
from tools.simulated import stocks
from tools.sources.finnhub import QUOTE, parse, request
from toolserver.upstream.source import SourceDown, SourceRefused, SourceUnusable
from toolserver.world.model import World

KEYS = {"FINNHUB_API_KEY": "sim-1"}
OPEN = World(1, datetime(2027, 1, 14, 18, tzinfo=UTC).timestamp())


def test_the_key_travels_in_a_header_and_without_one_nothing_is_asked():
    asked = request("AAPL", KEYS)

    assert asked.headers == {"X-Finnhub-Token": "sim-1"}
    assert asked.params == {"symbol": "AAPL"}
    assert request("AAPL", {}) is None
    with pytest.raises(SourceUnusable):
        ask(QUOTE, "AAPL")


def test_a_recorded_quote_parses_to_its_values(sample):
    quote = parse(json.loads(sample("finnhub/quote-AAPL.json")), "AAPL")

    assert (quote.price, quote.previous_close) == (311.55, 311)
    assert quote.as_of == datetime.fromtimestamp(1786038273, UTC)


def test_recorded_zeros_are_an_unknown_symbol_and_no_price(sample):
    assert parse(json.loads(sample("finnhub/quote-unknown-symbol.json")), "NOPE") is None


def test_an_error_is_a_refusal_that_quotes_nothing():
    with pytest.raises(SourceRefused) as caught:
        parse({"error": "Invalid API key 0123456789"}, "AAPL")
    assert "0123" not in caught.value.reason


@pytest.mark.parametrize(
    "body", [{}, [], None, {"c": 0, "pc": 1, "t": 5}, {"c": 5, "pc": 0, "t": 5}, {"c": 5, "pc": 4, "t": 0}]
)
def test_another_shape_is_not_read(body):
    with pytest.raises((LookupError, ValueError, TypeError)):
        parse(body, "AAPL")


def test_the_twin_answers_the_worlds_trades_for_shares_only():
    quote, seen = ask(QUOTE, "AAPL", world=OPEN, keys=KEYS), stocks.trade(OPEN, "AAPL")

    assert (quote.price, quote.previous_close) == (seen.last, seen.previous_close)
    assert ask(QUOTE, "NOPE", world=OPEN, keys=KEYS) is None
    for symbol, keys in (("SPX", KEYS), ("AAPL", {"FINNHUB_API_KEY": "other"})):
        with pytest.raises(SourceDown):
            ask(QUOTE, symbol, world=OPEN, keys=keys)
