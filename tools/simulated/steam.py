"""Simulate Steam's charts and store, and SteamSpy, on the wire: a hundred games with a daily curve."""

import json
import math
from collections.abc import Mapping
from typing import Any

from toolserver.world.model import Ask, Reply, World, expects, serves

API = "api.steampowered.com"
COUNT = 100
HOUR, DAY = 3600.0, 86400.0
STEP_S = 300.0  # players are counted that often
NAMES = ["Counter-Strike 2", "Dota 2", "PUBG: BATTLEGROUNDS", "Rust", "Apex Legends™", "Stardew Valley"]
FIRST = [730, 570, 578080, 252490, 1172470, 413150]
UNLISTED = 6  # this game has no store page


def app_id(index: int) -> int:
    return FIRST[index] if index < len(FIRST) else 2_000_000 + 137 * index


def name(index: int) -> str:
    return NAMES[index] if index < len(NAMES) else f"Game of the {index}th Age"


def players(world: World, index: int, at: float | None = None) -> int:
    """Return the number of players of a game at an instant: most in the evening of its own time zone."""
    at = world.now if at is None else at
    at -= at % STEP_S
    base = 900_000 / (index + 1) ** 0.9
    curve = 1 + 0.25 * math.sin(2 * math.pi * (at / DAY + world.u("game.zone", index)))
    return int(base * curve * (1 + 0.03 * world.noise(f"game.{index}", at / HOUR)))


def peak(world: World, index: int, start: float, end: float) -> int:
    """Return the maximum between two instants, counted every half hour and at the end."""
    moments = [start + i * HOUR / 2 for i in range(int((end - start) / (HOUR / 2)) + 1)]
    return max(players(world, index, at) for at in [*moments, end])


def chart(world: World) -> list[int]:
    """Return game numbers, most players first."""
    return sorted(range(COUNT), key=lambda index: players(world, index), reverse=True)


@serves(
    "Steam.concurrent_players",
    API,
    "/ISteamChartsService/GetGamesByConcurrentPlayers/v1/",
    forms={"empty": Reply.json({"response": {}})},
)
def concurrent(world: World, ask: Ask) -> Reply:
    midnight = world.now - world.now % DAY
    ranks = [
        {
            "rank": rank,
            "appid": app_id(index),
            "concurrent_in_game": players(world, index),
            "peak_in_game": peak(world, index, midnight, world.now),
        }
        for rank, index in enumerate(chart(world), 1)
    ]
    return Reply.json({"response": {"last_update": int(world.now - world.now % STEP_S), "ranks": ranks}})


@serves("Steam.store_items", API, "/IStoreBrowseService/GetItems/v1/", forms={"empty": Reply.json({"response": {}})})
def store_items(world: World, ask: Ask) -> Reply:
    app_ids = {int(item["appid"]) for item in json.loads(ask.params["input_json"])["ids"]}
    names = {app_id(index): name(index) for index in range(COUNT) if index != UNLISTED}
    items = [_item(app, names[app]) for app in app_ids if app in names]
    return Reply.json({"response": {"store_items": items}})


def _item(app: int, title: str) -> dict[str, Any]:
    return {
        "item_type": 0,
        "id": app,
        "success": 1,
        "visible": True,
        "name": title,
        "store_url_path": f"app/{app}/{title.replace(' ', '_')}",
        "appid": app,
        "type": 0,
        "tagids": [],
        "related_items": {},
    }


@serves(
    "SteamSpy.top100_2weeks",
    "steamspy.com",
    "/api.php",
    forms={
        "empty": Reply.json({}),
        "error200": Reply.text("Too many connections", content_type="text/html; charset=utf-8"),
    },
)
def top100(world: World, ask: Ask) -> Reply:
    """Return an object in the order of app ids; `ccu` is yesterday's peak."""
    today = world.now - world.now % DAY
    rows = {app_id(i): _spy(app_id(i), name(i), peak(world, i, today - DAY, today)) for i in range(COUNT)}
    return Reply.json({str(app): rows[app] for app in sorted(rows)})


def _spy(app: int, title: str, ccu: int) -> dict[str, Any]:
    return {
        "appid": app,
        "name": title,
        "developer": "Studio",
        "publisher": "Studio",
        "score_rank": "",
        "positive": ccu * 3,
        "negative": ccu,
        "userscore": 0,
        "owners": "10,000,000 .. 20,000,000",
        "average_forever": 28571,
        "average_2weeks": 72,
        "median_forever": 920,
        "median_2weeks": 72,
        "price": "0",
        "initialprice": "0",
        "discount": "0",
        "ccu": ccu,
    }


@expects("game-platform-top")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the games that `/api/game-platform-top` must list at this instant when Steam answers."""
    return [
        {
            "rank": rank,
            "app_id": app_id(index),
            "name": f"app {app_id(index)}" if index == UNLISTED else name(index),
            "players_now": players(world, index),
        }
        for rank, index in enumerate(chart(world)[:15], 1)
    ]
