"""SteamSpy: the hundred games most played in two weeks (JSON, no key). Its counts are of yesterday.

https://steamspy.com/api.php
"""

from typing import Any, NamedTuple

from tools.shared.numbers import number, positive
from tools.shared.text import NAME, clean_or_none
from tools.sources.hosts import STEAMSPY
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

API = "https://steamspy.com/api.php"
LICENCE = Licence("unclear", "SteamSpy", "https://steamspy.com/about")


class YesterdaysPeak(NamedTuple):
    """The most that played a game at once yesterday."""

    app_id: int
    name: str | None
    peak: int


def request(query: None, keys: Keys) -> Get:
    return Get(API, params={"request": "top100in2weeks"})


def parse(body: Any, query: None) -> tuple[YesterdaysPeak, ...]:
    """Every game, largest peak first: the answer is keyed by app id and has no order of its own."""
    games = [_game(row) for row in body.values()]
    if games and not any(game.peak for game in games):
        raise SourceChanged("nobody plays anything")
    return tuple(sorted(games, key=lambda game: (-game.peak, game.app_id)))


def _game(row: dict[str, Any]) -> YesterdaysPeak:
    return YesterdaysPeak(int(positive(row["appid"])), clean_or_none(row.get("name"), NAME), int(number(row["ccu"])))


TOP100 = Source(
    "SteamSpy.top100_2weeks",
    request,
    parse,
    licence=LICENCE,
    hosts=STEAMSPY,
    fresh_s=3600,
    keep_s=172800,
    timeout_s=15,
    least=50,
    untrusted=True,
)
