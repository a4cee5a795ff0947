"""Read the hundred most played games of two weeks from SteamSpy (JSON, no key). Its counts are yesterday's.

https://steamspy.com/api.php
"""

from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean_or_none, number, positive
from tools.sources.hosts import DAY, HOUR, STEAMSPY
from toolserver import Get, Licence, Source, SourceChanged, read_rows

API = "https://steamspy.com/api.php"
LICENCE = Licence("unclear", "SteamSpy", "https://steamspy.com/about")


class YesterdaysPeak(NamedTuple):
    """The highest number of simultaneous players of a game yesterday."""

    app_id: int
    name: str | None
    peak: int


def parse(body: Any, query: None) -> tuple[YesterdaysPeak, ...]:
    """Return every game, largest peak first: the answer is keyed by app id and has no order."""
    games = read_rows(body.values(), _game)
    if games and not any(game.peak for game in games):
        raise SourceChanged("no game has players")
    return tuple(sorted(games, key=lambda game: (-game.peak, game.app_id)))


def _game(row: dict[str, Any]) -> YesterdaysPeak:
    return YesterdaysPeak(int(positive(row["appid"])), clean_or_none(row.get("name"), NAME), int(number(row["ccu"])))


TOP100 = Source(
    "SteamSpy.top100_2weeks",
    Get(API, params={"request": "top100in2weeks"}),
    parse,
    licence=LICENCE,
    hosts=STEAMSPY,
    fresh_s=HOUR,
    ageless="averages of two weeks, written once a day, without a timestamp",
    keep_s=2 * DAY,
    timeout_s=15,
    least=50,
    untrusted=True,
)
