"""Kalshi's open events."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask, decoded, fetch
from tools.simulated.kalshi import yes_price
from tools.simulated.polymarket import bets
from tools.sources.kalshi import EVENTS, parse
from toolserver.upstream.source import Get, SourceChanged
from toolserver.world.model import World

MARKET = {
    "ticker": "KXRAIN-1",
    "title": "Will it rain?",
    "yes_sub_title": "Rain",
    "status": "active",
    "last_price_dollars": "0.1500",
    "volume_24h_fp": "200.00",
}


def event(*markets: dict[str, object]) -> dict[str, object]:
    return {"events": [{"event_ticker": "KXRAIN", "title": "Weather tomorrow", "markets": list(markets)}]}


def listed_in(body):
    return parse(body, None).bets


def test_recorded_events_parse_to_their_values(sample):
    listed = listed_in(json.loads(sample("kalshi/events-nested-markets.json")))

    mars = listed[0]
    assert mars.question == "Will Elon Musk visit Mars before Aug 1, 2099?"
    assert mars.prices == (0.15, 0.85)
    assert mars.volume_24h_usd == pytest.approx(28.16 * 0.15)
    assert mars.url == "https://kalshi.com/markets/KXELONMARS-99"
    assert mars.ends_at == datetime(2099, 8, 1, 4, 59, tzinfo=UTC)
    assert mars.change_24h == pytest.approx((0.13 + 0.15) / 2 - (0.15 + 0.16) / 2)
    assert (mars.change_1h, mars.liquidity_usd) == (None, None)
    assert mars.updated_at.year == 2026


def test_a_change_is_that_of_the_middle_of_bid_and_ask_and_a_trade_outside_them_is_no_probability():
    names = ("yes_bid", "yes_ask", "previous_yes_bid", "previous_yes_ask")
    book = {f"{name}_dollars": price for name, price in zip(names, ("0.40", "0.44", "0.30", "0.34"), strict=True)}
    [outside] = listed_in(event(MARKET | book | {"last_price_dollars": "0.90"}))
    assert outside.prices == pytest.approx((0.42, 0.58))
    assert outside.change_24h == pytest.approx(0.1)
    [within] = listed_in(event(MARKET | book | {"last_price_dollars": "0.44"}))
    assert within.prices[0] == 0.44
    empty = {"yes_bid_dollars": "0.0000", "yes_ask_dollars": "1.0000"}
    assert listed_in(event(MARKET | empty))[0].prices[0] == 0.15


def test_markets_that_share_their_title_are_told_apart_by_what_yes_stands_for(sample):
    questions = [bet.question for bet in listed_in(json.loads(sample("kalshi/events-nested-markets.json")))]
    assert "Who will the next Pope be? – Pietro Parolin" in questions
    assert "Will Ramp or Brex IPO first? – Brex" in questions


def test_markets_without_price_or_volume_and_finalized_ones_are_left_out(sample):
    raw = json.loads(sample("kalshi/events-nested-markets.json"))
    assert len(listed_in(raw)) == 10
    done = event(MARKET, MARKET | {"status": "finalized"}, MARKET | {"volume_24h_fp": None})
    assert len(listed_in(done)) == 1


def test_the_last_active_market_of_an_event_still_says_what_yes_stands_for():
    body = event(MARKET, MARKET | {"status": "finalized", "ticker": "KXRAIN-2"})
    assert listed_in(body)[0].question == "Weather tomorrow – Rain"


def test_the_wire_of_whole_cents_only_is_a_changed_source():
    cents = {k: v for k, v in MARKET.items() if not k.endswith(("_dollars", "_fp"))} | {"last_price": 15}
    with pytest.raises(SourceChanged):
        listed_in(event(cents, cents))


@pytest.mark.parametrize(
    "body", [None, [], "<html>", {}, {"events": None}, {"events": [None]}, {"error": {"code": "x"}}, event({})]
)
def test_what_is_not_a_list_of_events_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        listed_in(body)


@pytest.mark.parametrize("price", ["1.5", "-0.1", "NaN", "much", True])
def test_a_price_that_is_no_probability_leaves_its_market_out(price):
    body = event(MARKET, MARKET | {"ticker": "odd", "last_price_dollars": price})
    assert [bet.id for bet in listed_in(body)] == ["KXRAIN-1"]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e9)), max_size=5))
def test_parse_never_invents_or_drops_a_market(rows):
    markets = [
        MARKET | {"ticker": str(i), "last_price_dollars": f"{p:.4f}", "volume_24h_fp": f"{v:.2f}"}
        for i, (p, v) in enumerate(rows)
    ]
    listed = listed_in(event(*markets))
    assert [bet.id for bet in listed] == [str(i) for i in range(len(rows))]


def test_the_twin_lists_every_market_with_the_price_of_the_world():
    world = World(1, NOW)
    facts = {bet.number: bet for bet in bets(world)}
    listed = [bet for bet in ask(EVENTS).bets if not bet.id.startswith("KXQUIET")]

    assert len(listed) > 110
    for bet in listed:
        number = bet.id.rsplit("-", 1)[1]
        own = yes_price(world, facts[int(number.rstrip("AB"))])
        assert bet.prices[0] == pytest.approx(1 - own if number.endswith("B") else own)
    assert any(" – " in bet.question for bet in listed)


def test_both_hosts_are_the_same_service():
    plan = EVENTS.request
    bodies = [decoded(fetch(World(1, NOW), get), get) for get in plan]
    assert bodies[0] == bodies[1]


def test_the_drifted_form_is_read_like_the_usual_one_and_no_events_are_no_answer():
    assert ask(EVENTS, form="drift") == ask(EVENTS)
    assert len(ask(EVENTS, form="empty").bets) < EVENTS.least


@pytest.mark.parametrize(("cursor", "has_more"), [("", False), (None, False), ("CgYI8PqAvQYSC0tYTUFSUw", True)])
def test_a_page_with_a_cursor_is_not_all_there_is_and_says_what_was_read(cursor, has_more):
    page = parse(event(MARKET) | {"cursor": cursor}, None)
    told = "the first 1 open events in Kalshi's own order, not all: others may be traded more"
    assert page.has_more is has_more
    assert EVENTS.covers(page) == (told if has_more else None)


def test_the_twin_has_more_events_than_a_page_holds():
    first = ask(EVENTS)
    assert (first.events, first.has_more) == (200, True)
    get = EVENTS.request[0]
    body = decoded(fetch(World(1, NOW), get), get)
    onward = Get(get.url, params=get.params | {"cursor": body["cursor"]})
    last = parse(decoded(fetch(World(1, NOW), onward), onward), None)
    assert not last.has_more
    assert not {bet.id for bet in first.bets} & {bet.id for bet in last.bets}
