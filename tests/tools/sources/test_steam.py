"""Steam's charts and store, and SteamSpy."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask
from tools.simulated.steam import UNLISTED, app_id, chart, name, peak, players
from tools.sources import steamspy
from tools.sources.steam import PLAYERS, STORE_ITEMS, names_request, parse_names, parse_players
from tools.sources.steamspy import TOP100
from toolserver.upstream.source import SourceChanged, SourceEmpty
from toolserver.world.model import World

RANK = {"rank": 1, "appid": 730, "concurrent_in_game": 900_000, "peak_in_game": 1_200_000}
SPY = {"appid": 570, "name": "Dota 2", "ccu": 5}


def charted(*ranks: object, **more: object) -> dict[str, object]:
    body = {"last_update": NOW, "ranks": list(ranks) or [RANK | {"rank": i} for i in range(1, 16)]}
    return {"response": body | more}


def test_a_chart_parses_in_rank_order_with_its_time():
    ranks = [RANK | {"rank": i, "appid": 1000 + i, "concurrent_in_game": 10**6 - i} for i in range(20, 0, -1)]
    listed = parse_players(charted(*ranks), None)

    assert [g.app_id for g in listed.games] == list(range(1001, 1021))
    assert listed.counted_at == datetime.fromtimestamp(NOW, UTC)
    assert PLAYERS.newest(listed) == listed.counted_at


def test_the_recorded_sister_chart_has_no_players_now_and_is_refused(sample):
    body = json.loads(sample("steam/GetMostPlayedGames-3.json"))
    with pytest.raises(SourceEmpty):
        parse_players(body, None)
    body["response"]["ranks"] *= 5
    with pytest.raises(KeyError):
        parse_players(body, None)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "<html>",
        {},
        {"response": None},
        {"response": {}},
        charted(RANK),
        charted(*[RANK | {"concurrent_in_game": 0}] * 15),
        charted(*[RANK | {"concurrent_in_game": 40_000}] * 15),
        charted(*[RANK | {"concurrent_in_game": None}] * 15),
        charted(*[{}] * 15),
        charted(last_update=None),
        charted(last_update=NOW * 1000),
    ],
)
def test_what_is_not_a_chart_is_refused(body):
    with pytest.raises((SourceChanged, SourceEmpty, KeyError, TypeError, ValueError, AttributeError)):
        parse_players(body, None)


def test_a_chart_without_peaks_is_still_a_chart():
    ranks = [{k: v for k, v in (RANK | {"rank": i}).items() if k != "peak_in_game"} for i in range(1, 16)]
    assert {g.peak for g in parse_players(charted(*ranks), None).games} == {None}


def test_names_are_asked_in_one_stable_request():
    one, other = names_request((730, 570), {}), names_request((570, 730), {})
    assert one == other
    assert json.loads(one.params["input_json"])["ids"] == [{"appid": 570}, {"appid": 730}]
    assert STORE_ITEMS.key((730, 570)) == STORE_ITEMS.key((570, 730))


def test_names_that_are_missing_or_not_asked_for_are_not_there():
    items = [
        {"appid": 730, "success": 1, "name": "Counter-Strike\u202e 2"},
        {"appid": 570, "success": 2},
        {"appid": 440, "name": "Not asked for"},
    ]
    assert parse_names({"response": {"store_items": items}}, (730, 570)) == {730: "Counter-Strike 2"}
    assert parse_names({"response": {}}, (730,)) == {}


@pytest.mark.parametrize("body", [None, [], "<html>", {}, {"response": {"store_items": [{}]}}])
def test_what_is_not_a_list_of_store_items_is_refused(body):
    with pytest.raises((KeyError, TypeError, AttributeError)):
        parse_names(body, (730,))


def test_recorded_peaks_parse_to_their_values_largest_first(sample):
    games = steamspy.parse(json.loads(sample("steamspy/top100in2weeks.json")), None)

    assert len(games) == 100
    assert games[0] == (730, "Counter-Strike: Global Offensive", 923116)
    assert games[1] == (570, "Dota 2", 625336)
    assert [g.peak for g in games] == sorted((g.peak for g in games), reverse=True)


@pytest.mark.parametrize(
    "body", [None, [], "Too many connections", {"a": None}, {"570": {}}, {"570": SPY | {"ccu": 0}}]
)
def test_what_is_not_a_table_of_peaks_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        steamspy.parse(body, None)


@given(st.dictionaries(st.integers(1, 10**7), st.integers(1, 10**6), max_size=5))
def test_parse_never_invents_or_drops_a_game(peaks):
    games = steamspy.parse({str(a): {"appid": a, "name": None, "ccu": ccu} for a, ccu in peaks.items()}, None)
    assert {g.app_id: g.peak for g in games} == peaks


def test_the_twins_say_what_the_world_says():
    world = World(1, NOW)
    listed = ask(PLAYERS)
    order = chart(world)

    assert [g.app_id for g in listed.games] == [app_id(i) for i in order]
    assert [g.players for g in listed.games] == [players(world, i) for i in order]
    assert all(g.players <= g.peak for g in listed.games)
    yesterday = {g.app_id: g.peak for g in ask(TOP100)}
    today = NOW - NOW % 86400
    assert yesterday == {app_id(i): peak(world, i, today - 86400, today) for i in range(100)}
    names = ask(STORE_ITEMS, tuple(app_id(i) for i in range(20)))
    assert names == {app_id(i): name(i) for i in range(20) if i != UNLISTED}


def test_fault_forms_raise_what_they_mean():
    with pytest.raises(SourceEmpty):
        ask(PLAYERS, form="empty")
    assert len(ask(TOP100, form="empty")) < TOP100.least
    assert len(ask(STORE_ITEMS, (730,), form="empty")) < STORE_ITEMS.least
    with pytest.raises(ValueError, match="Expecting value"):
        ask(TOP100, form="error200")
