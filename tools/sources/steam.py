"""Read the most played games and the names of games from Steam (Web API, JSON, no key).

https://partner.steamgames.com/doc/webapi
"""

import json
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean_or_none, from_epoch, number, optional, positive
from tools.sources.hosts import DAY, HOUR, STEAM
from toolserver import Gauge, Get, Keys, Licence, Source, SourceChanged, SourceEmpty, read_rows

API = "https://api.steampowered.com"
# The terms of the API ask for credit. No clause about commercial use was found, for or against it.
LICENCE = Licence("unclear", "Steam (Valve Corporation)", "https://steamcommunity.com/dev/apiterms")
LEAST_RANKS = 15
LEAST_PLAYERS = 50_000  # the most played game never has fewer


class Played(NamedTuple):
    """The number of players of a game now, and the highest number so far today."""

    rank: int
    app_id: int
    players: int
    peak: int | None


class PlayedList(NamedTuple):
    """Games in rank order, and when the players were counted."""

    games: tuple[Played, ...]
    counted_at: datetime


def parse_players(body: Any, query: None) -> PlayedList:
    """Return every rank of the chart."""
    chart = body["response"]
    ranks = chart.get("ranks", [])
    if len(ranks) < LEAST_RANKS:
        raise SourceEmpty(f"{len(ranks)} ranks")
    games = tuple(sorted(read_rows(ranks, _played), key=lambda game: game.rank))
    if games[0].players <= LEAST_PLAYERS:
        raise SourceChanged(f"the most played game has {games[0].players} players")
    return PlayedList(games, from_epoch(chart["last_update"]))


def _played(rank: dict[str, Any]) -> Played:
    peak = optional(number, rank.get("peak_in_game"))
    return Played(
        rank=int(positive(rank["rank"])),
        app_id=int(positive(rank["appid"])),
        players=int(number(rank["concurrent_in_game"])),
        peak=None if peak is None else int(peak),
    )


PLAYERS = Source(
    "Steam.concurrent_players",
    Get(f"{API}/ISteamChartsService/GetGamesByConcurrentPlayers/v1/"),
    parse_players,
    licence=LICENCE,
    hosts=STEAM,
    fresh_s=300,
    newest=lambda listed: listed.counted_at,
    newest_max_s=6 * HOUR,
    gauge=Gauge(lambda listed: {"steam_players": median(game.players for game in listed.games)}, 0.45),
)


def names_request(query: tuple[int, ...], keys: Keys) -> Get:
    selection = {
        "ids": [{"appid": app_id} for app_id in sorted(query)],
        "context": {"language": "english", "country_code": "US"},
        "data_request": {},
    }
    return Get(
        f"{API}/IStoreBrowseService/GetItems/v1/", params={"input_json": json.dumps(selection, separators=(",", ":"))}
    )


def parse_names(body: Any, query: tuple[int, ...]) -> dict[int, str]:
    """Return names by app id. An app that the store does not know is absent."""
    items = body["response"].get("store_items", [])
    named = read_rows(items, lambda item: (int(positive(item["appid"])), clean_or_none(item.get("name"), NAME)))
    return {app_id: name for app_id, name in named if name and app_id in query}


STORE_ITEMS = Source(
    "Steam.store_items",
    names_request,
    parse_names,
    licence=LICENCE,
    hosts=STEAM,
    fresh_s=DAY,
    ageless="names of games, which rarely change and carry no timestamp",
    keep_s=30 * DAY,
    key=lambda query: tuple(sorted(query)),
    untrusted=True,
    probe=(730,),
)
