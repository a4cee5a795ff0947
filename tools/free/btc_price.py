"""GET /api/btc-price."""

from typing import Literal

from pydantic import Field

from tools.parsing.fields import percent, price
from tools.shared.spot import BTC_SPOT_SOURCES, Spot, btc_spot_fallbacks
from toolserver import CardValue, Payload, ToolContext, tool


class BtcPrice(Payload):
    price_usd: float = Field(gt=0, description="Last trade")
    change_24h_percent: float | None
    high_24h: float | None
    low_24h: float | None
    volume_24h_usd: float | None = Field(description="Of this venue, or of all for a market page")
    venue: str = Field(examples=["coinbase"], description="Who gave the numbers")
    quote: Literal["USD", "USDT"] = Field(description="Currency of the numbers; USDT is not converted")


@tool(
    path="/api/btc-price",
    title="Bitcoin price",
    search_hint="bitcoin BTC ethereum ETH solana crypto coin token price worth dollars",
    toolset="core",
    ttl_s=30,
    sources=BTC_SPOT_SOURCES,
    headline=CardValue("price_usd", "$", "{change_24h_percent} % in 24 h"),
)
async def btc_price(ctx: ToolContext) -> BtcPrice:
    """The bitcoin price now, with its change, high, low and traded volume of the past 24 hours, and which venue
    says so. Use it for "what is bitcoin at?"; for other coins use crypto_movers.

    Shape: a null field is one the venue does not give; a warning names it.
    Source: Coinbase, refreshed every 30 seconds; when it is down the first that answers of Kraken, Binance, OKX,
    CoinGecko, Coinlore and Chainlink.
    """
    spot = await ctx.first("data", *btc_spot_fallbacks())
    if spot.missing:
        ctx.warn("data", "field_missing", f"{', '.join(spot.missing)}: not known from {spot.venue}.")
    return shown(spot)


def shown(spot: Spot) -> BtcPrice:
    """Return the payload, rounded to the digits that carry meaning."""
    return BtcPrice(
        price_usd=price(spot.price_usd),
        change_24h_percent=None if spot.change_24h_percent is None else percent(spot.change_24h_percent),
        high_24h=None if spot.high_24h is None else price(spot.high_24h),
        low_24h=None if spot.low_24h is None else price(spot.low_24h),
        volume_24h_usd=None if spot.volume_24h_usd is None else float(round(spot.volume_24h_usd)),
        venue=spot.venue,
        quote=spot.quote,
    )
