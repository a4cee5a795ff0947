"""GET /api/game-platform-top."""

from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, RootModel

from tools.sources.steam import PLAYERS, STORE_ITEMS, PlayedList
from tools.sources.steamspy import TOP100, YesterdaysPeak
from toolserver import CardValue, Definition, Fallback, Meaning, Payload, Picture, ToolContext, tool, up_to, via

SHOWN = 15


class GameItem(Payload):
    rank: int = Field(description="Place in this list, from 1")
    app_id: int = Field(description="Steam's id of the game")
    name: str = Field(description="Name in the store, or `app <id>` without a public page")
    players_now: int | None = Field(description="Players at this moment; null from SteamSpy")
    peak_today: int | None = Field(description="Most players at once today, by Steam's day; null from SteamSpy")
    peak_yesterday: int | None = Field(description="Most players at once yesterday; null from Steam")
    url: str = Field(description="Page of the game in the store")


class GamePlatformTop(RootModel[Annotated[list[GameItem], Field(max_length=SHOWN, description="Most played first")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


class Game(NamedTuple):
    """A game from either source."""

    app_id: int
    name: str | None = None
    now: int | None = None
    peak_today: int | None = None
    peak_yesterday: int | None = None


@tool(
    path="/api/game-platform-top",
    title="Most played games",
    search_hint="popular steam games most played right now players video gaming moment",
    ttl_s=600,
    sources=(PLAYERS, STORE_ITEMS, TOP100),
    headline=CardValue("0.players_now", "players", "{0.name}", is_series=False),
    pictures=(Picture("bars", "Players now", values=("players_now",), label="name"),),
)
async def game_platform_top(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> GamePlatformTop:
    """The 15 most played games on Steam right now, with how many play at this moment and today's peak. Use it for
    "what is everybody playing?".

    Shape: ranked by players now. When only SteamSpy answers, ranked by yesterday's peak, with the other counts null.
    A game without a public store page is called "app <id>".
    Source: Steam, refreshed every 10 minutes; SteamSpy when Steam is down.
    """
    listed = await ctx.first("data", via(PLAYERS, None, from_steam), via(TOP100, None, from_steamspy))
    games = ctx.page(listed, limit)
    if games[0].now is None:
        ctx.warn(
            "data",
            "degraded_fallback",
            "Counts are yesterday's peaks; players_now and peak_today are not known.",
            TOP100.name,
        )
        return GamePlatformTop([shown(rank, game, game.name) for rank, game in enumerate(games, 1)])
    ask_names: Fallback[dict[int, str]] = via(STORE_ITEMS, tuple(game.app_id for game in listed))
    names = await ctx.section("data.name", ask_names) or {}
    return GamePlatformTop([shown(rank, game, names.get(game.app_id)) for rank, game in enumerate(games, 1)])


def from_steam(listed: PlayedList) -> list[Game]:
    best = sorted(listed.games, key=lambda game: game.rank)[:SHOWN]
    return [Game(game.app_id, now=game.players, peak_today=game.peak) for game in best]


def from_steamspy(listed: tuple[YesterdaysPeak, ...]) -> list[Game]:
    best = sorted(listed, key=lambda game: game.peak, reverse=True)[:SHOWN]
    return [Game(game.app_id, game.name, peak_yesterday=game.peak) for game in best]


def shown(rank: int, game: Game, name: str | None) -> GameItem:
    return GameItem(
        rank=rank,
        app_id=game.app_id,
        name=name or f"app {game.app_id}",
        players_now=game.now,
        peak_today=game.peak_today,
        peak_yesterday=game.peak_yesterday,
        url=f"https://store.steampowered.com/app/{game.app_id}",
    )


PEAK_TODAY = Meaning(
    "game-platform-top.peak_today",
    "As Steam publishes it, without saying where its day begins",
    definition=Definition(publisher="Valve"),
)
