"""GET /api/crypto-movers."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.parsing.coins import MovedCoin, movers
from tools.parsing.fields import percent, price
from tools.sources.coingecko import COINS_MARKETS
from tools.sources.coinlore import TICKERS as COINLORE
from tools.sources.coinpaprika import TICKERS as COINPAPRIKA
from toolserver import CardValue, Meaning, Payload, Picture, ToolContext, lacking, tool, up_to, via


class Mover(Payload):
    symbol: str = Field(examples=["SOL"], description="Symbol of the coin")
    name: str = Field(description="Name of the coin")
    price_usd: float = Field(gt=0, description="Price in USD, over all venues")
    change_24h_percent: float = Field(description="Change of the price in 24 hours, percent")
    market_cap_usd: float | None = Field(description="Price of all coins in circulation, USD; null: not published")
    volume_24h_usd: float | None = Field(description="Traded in 24 hours at all venues, USD; null: not published")
    rank: int = Field(ge=1, description="Rank by market value, from 1")
    image: str | None = Field(description="Address of the coin's logo; null: not from CoinGecko")


class Movers(RootModel[list[Mover]]):
    """The biggest move first."""

    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/crypto-movers",
    title="Crypto movers",
    search_hint="coins pumped dumped most today gainers losers altcoins which",
    ttl_s=30,
    sources=(COINS_MARKETS, COINLORE, COINPAPRIKA),
    headline=CardValue(
        "0.price_usd", "$", "{0.name}, the largest move", is_series=False, change="0.change_24h_percent"
    ),
    pictures=(Picture("bars", "Change in 24 hours", values=("change_24h_percent",), label="name", unit="%"),),
)
async def crypto_movers(ctx: ToolContext, limit: Annotated[int, up_to(15)] = 15) -> Movers:
    """The 15 coins, of the 100 largest, whose price moved most in the past 24 hours, up or down, biggest move first.
    Use it for "what is moving in crypto?"; for bitcoin alone use btc_price.

    Shape: sorted by the size of the change, not by market value. Left out are stable coins, wrapped duplicates
    and coins with less than 1,000,000 USD of trading a day.
    Source: CoinGecko, refreshed every 90 seconds; Coinlore, then CoinPaprika when it is down (without images).
    """
    others = [lacking(via(source, None, movers), "image") for source in (COINLORE, COINPAPRIKA)]
    moves = await ctx.first("data", via(COINS_MARKETS, None, movers), *others)
    return Movers([_shown(moved) for moved in ctx.page(moves, limit)])


def _shown(moved: MovedCoin) -> Mover:
    coin = moved.coin
    return Mover(
        symbol=coin.symbol,
        name=coin.name,
        price_usd=price(coin.price_usd),
        change_24h_percent=percent(moved.change_24h_percent),
        market_cap_usd=_whole(coin.market_cap_usd),
        volume_24h_usd=_whole(coin.volume_24h_usd),
        rank=moved.rank,
        image=coin.image,
    )


def _whole(dollars: float | None) -> float | None:
    return None if dollars is None else round(dollars)


MOVERS = Meaning(
    "crypto-movers.change_24h_percent",
    "Of the 100 largest coins by market value, by the change of 24 hours that the list itself publishes",
)
