"""Polymarket's market list, and the bets of the simulated world."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask, decoded, fetch
from tools.parsing.prediction_markets import newest_bet
from tools.shared.bets import counts
from tools.simulated.polymarket import bets, is_reticent, price, price_change, volume
from tools.sources.polymarket import MARKETS, parse
from toolserver.upstream.decode import count_rows
from toolserver.upstream.source import SourceChanged, SourceDown
from toolserver.world.model import Edits, World

ROW = {
    "id": "1",
    "question": "Will it rain?",
    "slug": "rain",
    "outcomes": '["Yes", "No"]',
    "outcomePrices": '["0.2", "0.8"]',
    "volume24hr": 12.5,
    "updatedAt": "2026-07-11T09:44:10.145299Z",
    "events": [{"slug": "weather"}],
}


def test_recorded_markets_parse_to_their_values(sample):
    listed = parse(json.loads(sample("polymarket/gamma-markets-by-volume24hr.json")), None)

    assert len(listed) == 10
    spain = listed[0]
    assert spain.question == "Will Spain win the 2026 FIFA World Cup?"
    assert (spain.outcomes, spain.prices) == (("Yes", "No"), (0.2115, 0.7885))
    assert spain.volume_24h_usd == 4825727.400634047
    assert spain.liquidity_usd == 6363041.95622
    assert spain.url == ("https://polymarket.com/event/world-cup-winner/will-spain-win-the-2026-fifa-world-cup-963")
    assert spain.ends_at == datetime(2026, 7, 20, tzinfo=UTC)
    assert spain.created_at == datetime(2025, 7, 2, 16, 54, 40, 860413, tzinfo=UTC)
    assert [bet.change_1h for bet in listed[4:7]] == [-0.12, 0.002, -0.0005]
    assert spain.change_1h is None


def test_all_recorded_rows_share_one_stamp_which_is_the_age_of_the_list(sample):
    listed = parse(json.loads(sample("polymarket/gamma-markets-by-volume24hr.json")), None)
    assert {bet.updated_at for bet in listed} == {newest_bet(listed)}


def test_the_recorded_question_between_teams_is_read_and_does_not_count(sample):
    listed = parse(json.loads(sample("polymarket/gamma-markets-by-volume24hr.json")), None)
    assert listed[4].outcomes == ("Hanwha Life Esports", "LYON")
    assert [counts(bet) for bet in listed] == [True, True, True, False, False, True, False, True, False, False]


@pytest.mark.parametrize(
    "body", [None, {}, {"type": "validation error", "error": "limit"}, "<html>", [{}], [None], [[1]], ["x"]]
)
def test_what_is_not_a_list_of_markets_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, None)


@pytest.mark.parametrize("member", ["id", "question", "updatedAt"])
def test_a_row_without_a_required_member_is_a_changed_source(member):
    with pytest.raises(KeyError):
        parse([{k: v for k, v in ROW.items() if k != member}], None)


@pytest.mark.parametrize(
    ("change", "prices"),
    [
        ({}, (0.2, 0.8)),
        ({"outcomePrices": ["0.2", 0.8], "outcomes": ["Yes", "No"]}, (0.2, 0.8)),
        ({"outcomePrices": '["0.2"]'}, ()),
        ({"outcomePrices": '["NaN", "1"]'}, ()),
        ({"outcomePrices": '["20", "80"]'}, ()),
        ({"outcomePrices": "null"}, ()),
        ({"outcomePrices": "[0.2"}, ()),
        ({"outcomePrices": None}, ()),
    ],
)
def test_prices_are_read_from_either_form_and_a_bad_one_leaves_its_market_without(change, prices):
    listed = parse([ROW, ROW | change], None)
    assert listed[1].prices == prices


def test_a_list_in_which_no_market_has_prices_is_a_changed_source():
    with pytest.raises(SourceChanged):
        parse([ROW | {"outcomePrices": None}] * 30, None)


def test_optional_members_that_are_odd_are_null_and_the_rest_stays():
    odd = {"liquidityNum": "much", "oneHourPriceChange": "?", "endDate": "soon", "createdAt": "", "events": []}
    (bet,) = parse([ROW | odd], None)
    assert (bet.liquidity_usd, bet.change_1h, bet.ends_at, bet.created_at, bet.url) == (None,) * 5
    assert bet.prices == (0.2, 0.8)


def test_a_slug_cannot_lead_elsewhere():
    (bet,) = parse([ROW | {"slug": "../../evil?x=1#y"}], None)
    assert bet.url == "https://polymarket.com/event/weather/..%2F..%2Fevil%3Fx%3D1%23y"


def test_closed_markets_are_left_out():
    assert parse([ROW | {"closed": True}, ROW], None) == parse([ROW], None)


PAGE = {"$schema": "https://gamma-api.polymarket.com/schemas/MarketsKeysetListResponse.json", "next_cursor": "3Cqz"}


def test_a_page_of_the_keyset_list_is_read_like_the_bare_list_that_it_replaces():
    rows = [ROW, ROW | {"id": "2", "volume24hr": 3.5}]
    assert parse(PAGE | {"markets": rows}, None) == parse(rows, None)
    assert [bet.volume_24h_usd for bet in parse(PAGE | {"markets": rows}, None)] == [12.5, 3.5]


def test_the_keyset_list_is_asked_first_and_the_bare_list_only_after_it():
    first, second = MARKETS.plan(None, {})
    assert first.url == "https://gamma-api.polymarket.com/markets/keyset"
    assert second.url == "https://gamma-api.polymarket.com/markets"
    assert first.params == second.params
    assert first.params["order"] == "volume24hr"


@pytest.mark.parametrize("silent", [{}, {"volume24hr": None}])
def test_a_market_that_says_no_volume_is_left_out_and_is_no_damaged_row(silent):
    quiet = {name: value for name, value in ROW.items() if name != "volume24hr"} | silent
    with count_rows(0.1) as count:
        listed = parse([ROW, quiet, ROW, ROW], None)
    assert len(listed) == 3
    assert count.dropped == 0


def test_a_list_in_which_hardly_a_market_says_a_volume_is_a_changed_source():
    quiet = {name: value for name, value in ROW.items() if name != "volume24hr"}
    with pytest.raises(SourceChanged, match="2 of 3 open markets lack a volume"):
        parse([ROW, quiet, quiet], None)


def test_markets_that_are_resolved_say_no_volume_and_spoil_no_list():
    resolved = {name: value for name, value in ROW.items() if name != "volume24hr"} | {"closed": True}
    assert parse([ROW, resolved, resolved, resolved], None) == parse([ROW], None)
    assert parse([resolved], None) == ()


def test_an_absent_change_is_no_change_said_and_not_a_change_of_zero():
    (silent,) = parse([ROW], None)
    (still,) = parse([ROW | {"oneHourPriceChange": 0, "oneDayPriceChange": 0}], None)
    assert (silent.change_1h, silent.change_24h) == (None, None)
    assert (still.change_1h, still.change_24h) == (0, 0)


def test_a_list_in_another_order_than_that_of_volume_is_not_taken_for_the_most_traded():
    ordered = [ROW | {"id": str(n), "volume24hr": 1000 - n} for n in range(30)]
    mixed = sorted(ordered, key=lambda row: int(row["id"]) * 7 % 30)
    assert len(parse(ordered[::-1][-2:] + ordered[2:], None)) == 30
    with pytest.raises(SourceChanged, match="order"):
        parse(mixed, None)


def test_the_bare_list_of_the_twin_announces_its_end_and_lists_the_same():
    keyset, former = (fetch(World(1, NOW), get) for get in MARKETS.plan(None, {}))
    assert former.headers["deprecation"] == "true"
    assert former.headers["warning"] == '299 - "use /markets/keyset"'
    assert "deprecation" not in keyset.headers
    page = decoded(keyset, MARKETS.plan(None, {})[0])
    assert page["markets"] == decoded(former, MARKETS.plan(None, {})[1])
    assert page["next_cursor"]


def test_most_rows_of_the_twin_say_nothing_of_their_changes_as_upstream():
    listed = ask(MARKETS)
    assert 0.4 <= sum(bet.change_1h is None and bet.change_24h is None for bet in listed) / len(listed) <= 0.75


@given(st.lists(st.tuples(st.text(), st.floats(0, 1e9), st.floats(0, 1)), max_size=5))
def test_parse_never_invents_or_drops_a_market(rows):
    body = [
        ROW | {"id": str(i), "question": question, "volume24hr": traded, "outcomePrices": json.dumps([p, 1 - p])}
        for i, (question, traded, p) in enumerate(rows)
    ]
    listed = parse(body, None)
    assert [(bet.id, bet.volume_24h_usd, bet.prices[0]) for bet in listed] == [
        (str(i), traded, p) for i, (_, traded, p) in enumerate(rows)
    ]


def test_the_twin_lists_the_hundred_largest_markets_as_the_world_has_them():
    world = World(1, NOW)
    listed = ask(MARKETS)
    facts = {str(bet.id): bet for bet in bets(world)}

    assert len(listed) == 100
    assert [b.volume_24h_usd for b in listed] == sorted((b.volume_24h_usd for b in listed), reverse=True)
    for bet in listed:
        assert bet.prices[0] == price(world, facts[bet.id])
        assert bet.volume_24h_usd == volume(world, facts[bet.id])
        said = None if is_reticent(world, facts[bet.id]) else price_change(world, facts[bet.id], 3600)
        assert (bet.change_1h or 0) == (said or 0)
    assert sum(bet.outcomes != ("Yes", "No") for bet in listed) >= 8


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("hour", [0, 5, 11, 17, 23])
def test_at_any_time_some_large_markets_moved_by_a_point_within_the_hour(seed, hour):
    listed = ask(MARKETS, world=World(seed, NOW + hour * 3700))
    moving = [b for b in listed if counts(b) and b.volume_24h_usd >= 10_000 and abs(b.change_1h or 0) >= 0.01]
    assert 3 <= len(moving) <= 40


def test_on_a_quiet_day_nothing_moves_and_a_market_can_be_moved_by_hand():
    quiet = Edits(pins={"bets.quiet": [(NOW - 86400, NOW + 7200, 1)]})
    assert not any(b.change_1h for b in ask(MARKETS, world=World(1, NOW, quiet)))

    moved_by_hand = Edits(quiet.pins, [{"kind": "market_move", "at": NOW - 60, "market": 10, "move": 0.2}])
    changes = [b.change_1h for b in ask(MARKETS, world=World(1, NOW, moved_by_hand)) if b.change_1h]
    assert changes == [pytest.approx(0.2)]


def test_the_drifted_form_is_read_like_the_usual_one():
    assert ask(MARKETS, form="drift") == ask(MARKETS)


def test_no_markets_and_a_refusal_are_no_answer():
    assert len(ask(MARKETS, form="empty")) < MARKETS.least
    with pytest.raises(SourceDown):
        ask(MARKETS, form="geo")
