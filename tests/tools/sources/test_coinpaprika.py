"""CoinPaprika's ticker list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.coinpaprika  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.parsing.coins import by_symbol
from tools.simulated.market import DAY, change_percent, coins, price
from tools.sources.coinpaprika import TICKERS, parse
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world.model import World


def row(symbol="BTC", rank=1, usd=97000.5):
    quote = {"price": usd, "volume_24h": 2e9, "market_cap": 1.9e12, "percent_change_24h": -1.5}
    return {
        "symbol": symbol,
        "name": symbol,
        "rank": rank,
        "quotes": {"USD": quote},
        "last_updated": "2027-01-15T07:59:00Z",
    }


def test_a_row_parses_to_its_values():
    (bitcoin,) = parse([row()], None)
    assert (bitcoin.symbol, bitcoin.price_usd, bitcoin.change_24h_percent) == ("BTC", 97000.5, -1.5)
    assert (bitcoin.volume_24h_usd, bitcoin.market_cap_usd, bitcoin.rank) == (2e9, 1.9e12, 1)
    assert (bitcoin.change_1h_percent, bitcoin.high_24h) == (None, None)
    assert bitcoin.updated_at.timestamp() == NOW - 60


def test_only_ranks_one_to_a_hundred_are_kept_in_their_order():
    listed = parse([row("GONE", 0), row("LOW", 101), row("ETH", 2), row("LAST", 100), row()], None)
    assert [c.symbol for c in listed] == ["BTC", "ETH", "LAST"]


def test_an_error_object_is_not_a_list():
    with pytest.raises(SourceChanged, match="internal error"):
        ask(TICKERS, form="error200")


@pytest.mark.parametrize("body", [[], [row(usd=0)], [row(usd=None)]])
def test_nothing_with_a_price_is_empty(body):
    with pytest.raises(SourceEmpty):
        parse(body, None)


def test_a_row_without_quotes_is_left_out():
    assert parse([row(), {"symbol": "ETH", "name": "Ethereum", "rank": 2}], None) == parse([row()], None)


@pytest.mark.parametrize("body", [None, {}, "<html>", 7, [None], {"data": None}])
def test_another_body_is_never_read_as_coins(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


@given(st.lists(st.floats(1e-9, 1e6), max_size=99))
def test_parse_never_invents_or_drops_coins(prices):
    body = [row(), *(row(f"C{i}", i, usd) for i, usd in enumerate(prices, 2))]
    assert [c.price_usd for c in parse(body, None)[1:]] == prices


def test_the_twin_lists_the_hundred_largest_of_the_world():
    world = World(1, NOW)
    listed = ask(TICKERS)

    assert [c.rank for c in listed] == list(range(1, 101))
    assert {c.symbol for c in listed} == {c.symbol for c in coins()}
    bitcoin = by_symbol(listed, "BTC")
    assert bitcoin.price_usd == pytest.approx(price(world, "BTC"), rel=0.001)
    assert bitcoin.change_24h_percent == pytest.approx(change_percent(world, "BTC", DAY), abs=0.006)
