"""Coinlore's ticker list."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.coinlore  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.coins import by_symbol
from tools.simulated.market import DAY, change_percent, coins, price
from tools.sources.coinlore import TICKERS, parse
from toolserver.upstream.source import SourceEmpty, SourceError
from toolserver.world.model import World

BITCOIN = {"symbol": "BTC", "name": "Bitcoin", "price_usd": "97000.00"}


def page(*rows):
    return {"data": list(rows), "info": {"coins_num": 13153, "time": NOW}}


def test_a_recorded_list_parses_to_its_values(sample):
    listed = parse(json.loads(sample("coinlore/tickers.json")), None)

    assert len(listed) == 100
    bitcoin = listed[0]
    assert (bitcoin.symbol, bitcoin.name, bitcoin.price_usd, bitcoin.rank) == ("BTC", "Bitcoin", 68345.81, 1)
    assert (bitcoin.change_1h_percent, bitcoin.change_24h_percent, bitcoin.change_7d_percent) == (-0.33, 1.05, -0.38)
    assert bitcoin.market_cap_usd == 1350570219118.40
    assert bitcoin.volume_24h_usd == pytest.approx(32368265258.2067)
    assert bitcoin.updated_at == datetime(2024, 11, 4, 15, 28, 3, tzinfo=UTC)
    assert (bitcoin.high_24h, bitcoin.low_24h, bitcoin.image) == (None, None, None)


def test_the_document_carries_the_time_and_must():
    with pytest.raises(KeyError):
        parse({"data": [BITCOIN]}, None)
    with pytest.raises(ValueError, match="not epoch"):
        parse({"data": [BITCOIN], "info": {"time": NOW * 1000}}, None)


def test_prices_of_zero_are_no_prices():
    with pytest.raises(SourceEmpty):
        parse(page(BITCOIN | {"price_usd": "0"}), None)
    assert [c.symbol for c in parse(page(BITCOIN, {"symbol": "X", "name": "X", "price_usd": ""}), None)] == ["BTC"]


def test_an_optional_member_that_is_no_number_is_null():
    (bitcoin,) = parse(page(BITCOIN | {"percent_change_24h": "?", "market_cap_usd": "", "rank": "first"}), None)
    assert (bitcoin.change_24h_percent, bitcoin.market_cap_usd, bitcoin.rank) == (None, None, None)


@pytest.mark.parametrize("body", [None, {}, "<html>", 7, [None], {"data": None}])
def test_another_body_is_never_read_as_coins(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


@given(st.lists(st.tuples(st.text("ABCxyz", min_size=1, max_size=6), st.floats(1e-9, 1e6)), max_size=30))
def test_parse_never_invents_or_drops_coins(rows):
    listed = parse(page(BITCOIN, *({"symbol": s, "name": s, "price_usd": f"{p!r}"} for s, p in rows)), None)
    assert [(c.symbol, c.price_usd) for c in listed[1:]] == [(s.upper(), p) for s, p in rows]


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_lists_what_the_world_holds_in_either_form(form):
    world = World(1, NOW)
    listed = ask(TICKERS, form=form)

    assert [c.symbol for c in listed] == [c.symbol for c in coins()]
    assert [c.rank for c in listed] == list(range(1, 101))
    ether = by_symbol(listed, "ETH")
    assert ether.price_usd == pytest.approx(price(world, "ETH"), rel=0.002)
    assert ether.change_24h_percent == pytest.approx(change_percent(world, "ETH", DAY), abs=0.006)
    assert 0 <= NOW - TICKERS.newest(listed).timestamp() <= 60


def test_the_twin_has_every_member_of_the_recorded_list(sample):
    recorded = json.loads(sample("coinlore/tickers.json"))["data"][0]
    made = json.loads(fetch(World(1, NOW), TICKERS.request).body)["data"][0]
    assert recorded.keys() <= made.keys()
    assert {k: type(v) for k, v in recorded.items()} == {k: type(made[k]) for k in recorded}


def test_an_empty_page_is_empty():
    with pytest.raises(SourceEmpty):
        ask(TICKERS, form="empty")
