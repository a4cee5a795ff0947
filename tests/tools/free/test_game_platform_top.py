"""The tool for the most played games."""

import pytest

from tests.tools.desk import NOW
from tools.free.game_platform_top import game_platform_top
from tools.simulated.steam import UNLISTED, app_id
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

STEAM, STORE, SPY = "Steam.concurrent_players", "Steam.store_items", "SteamSpy.top100_2weeks"


async def test_games_come_most_played_first_and_equal_the_world(compose):
    made = await compose(game_platform_top)

    expected = ROUTES.expectations["game-platform-top"](World(1, NOW), {})
    assert [{k: g[k] for k in ("rank", "app_id", "name", "players_now")} for g in made.json] == expected
    assert len(expected) == 15
    assert {g["peak_yesterday"] for g in made.json} == {None}
    assert [(n.source.name, n.section) for n in made.notes.sources] == [(STEAM, "data"), (STORE, "data.name")]
    assert not made.notes.warnings


async def test_a_game_without_a_store_page_is_called_by_its_number(compose):
    made = await compose(game_platform_top)
    (unlisted,) = [g for g in made.json if g["app_id"] == app_id(UNLISTED)]
    assert unlisted["name"] == f"app {app_id(UNLISTED)}"


async def test_without_the_store_the_counts_remain_and_the_names_are_numbers(compose):
    made = await compose(game_platform_top, down={STORE})
    assert all(g["name"] == f"app {g['app_id']}" and g["players_now"] > 0 for g in made.json)
    assert [(w.section, w.code) for w in made.notes.warnings] == [("data.name", "section_unavailable")]


async def test_when_steam_is_down_yesterdays_peaks_stand_in_their_own_field(compose):
    made = await compose(game_platform_top, down={STEAM})

    peaks = [g["peak_yesterday"] for g in made.json]
    assert peaks == sorted(peaks, reverse=True)
    assert {g[member] for g in made.json for member in ("players_now", "peak_today")} == {None}
    assert made.json[0]["name"] == "Counter-Strike 2"
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "degraded_fallback"]


@pytest.mark.parametrize(
    "faults", [{"down": {"*"}}, {"forms": {STEAM: "empty", SPY: "error200"}}, {"forms": {STEAM: "empty", SPY: "empty"}}]
)
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(game_platform_top, **faults)
