"""GET /api/btc-price."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from tools.parsing.coins import LARGEST, CoinUnknown
from tools.parsing.fields import percent, price
from tools.shared.candles import BTC_DAY
from tools.shared.spot import SPOT_SOURCES, Spot, btc_spot_fallbacks, spot_fallbacks
from toolserver import (
    CardValue,
    EventArguments,
    EventId,
    EventKind,
    EventLevel,
    InvalidArguments,
    MarketQuote,
    Payload,
    ToolContext,
    tool,
)


class BtcPrice(Payload):
    price_usd: float = Field(gt=0, description="Last price, in the currency of `quote`")
    change_24h_percent: float | None = Field(
        description="Change of the price in about 24 hours, percent; null: the venue does not give it"
    )
    high_24h: float | None = Field(
        description="Highest price in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    low_24h: float | None = Field(
        description="Lowest price in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    volume_24h_usd: float | None = Field(
        description="Traded in 24 hours at this venue, or at all for a market page; null: the venue does not give it"
    )
    venue: str = Field(examples=["coinbase"], description="Exchange or market page that gave the numbers")
    quote: Literal["USD", "USDT"] = Field(description="Currency of the numbers; USDT is not converted")
    symbol: str = Field(examples=["BTC"], description="Symbol of the coin")
    name: str = Field(examples=["Bitcoin"], description="Name of the coin: the largest one of that symbol")


class PriceBounds(EventArguments):
    symbol: Annotated[str, AfterValidator(str.upper)] = Field(
        pattern=r"^[A-Za-z0-9.$*+_\-]{1,20}$",
        description="Symbol of a coin, one of the 250 largest",
        examples=["BTC"],
    )
    above: float | None = Field(None, gt=0, description="An event when the price rises above this, USD")
    below: float | None = Field(None, gt=0, description="An event when the price falls below this, USD")
    clear_below: float | None = Field(
        None, gt=0, description="With above: there is no other event until the price was below this; default above"
    )
    clear_above: float | None = Field(
        None, gt=0, description="With below: there is no other event until the price was above this; default below"
    )
    for_s: int = Field(0, ge=0, le=86_400, description="Only when the price has stayed there for so many seconds")

    @model_validator(mode="after")
    def _has_one_bound(self) -> "PriceBounds":
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above and below")
        if self.clear_below is not None and (self.above is None or self.clear_below > self.above):
            raise ValueError("clear_below goes with above, and is not larger")
        if self.clear_above is not None and (self.below is None or self.clear_above < self.below):
            raise ValueError("clear_above goes with below, and is not smaller")
        return self


class PriceCrossing(Payload):
    id: EventId = Field(description="Symbol of the coin, as you gave it")
    price: float = Field(description="The price, in the currency of `quote`")
    quote: Literal["USD", "USDT"] = Field(description="Currency of the price; USDT is not converted")
    crossed: Literal["above", "below"] = Field(description="Which of your bounds the price crossed")
    bound: float = Field(description="The bound")


def _read_price(payload: Any, wanted: PriceBounds, now: datetime) -> list[Mapping[str, Any]] | None:
    spot = payload["data"]
    crossed = "below" if wanted.above is None else "above"
    bound = wanted.below if wanted.above is None else wanted.above
    facts = {"price": spot["price_usd"], "quote": spot["quote"], "crossed": crossed, "bound": bound}
    return [{"id": wanted.symbol, **facts}]


PRICE_CROSSED = EventKind(
    "price.crossed",
    "The price of bitcoin or of another large coin rose above, or fell below, a bound of yours. One event for each"
    " crossing: the next comes only after the price was back.",
    PriceBounds,
    PriceCrossing,
    ask=lambda wanted: {"coin": wanted.symbol},
    read=_read_price,
    level=EventLevel("price", bounds=lambda wanted: wanted.model_dump(exclude={"symbol"}, exclude_none=True)),
)


def _spell(coin: str) -> str:
    """Return one spelling for all that mean the same coin, so that they have one answer: BTC for bitcoin."""
    plain = coin.strip().casefold()
    return "BTC" if plain in ("btc", "bitcoin", "xbt") else plain


@tool(
    path="/api/btc-price",
    title="Bitcoin price",
    search_hint="what is the price of bitcoin BTC ethereum ETH solana crypto coin",
    always_loaded=True,
    toolset="core",
    ttl_s=30,
    sources=SPOT_SOURCES,
    headline=CardValue(
        "price_usd",
        "$",
        "{name}, past 24 h",
        change="change_24h_percent",
        days=BTC_DAY,
        quotes=(MarketQuote("Bitcoin", "price_usd", "$", "change_24h_percent", BTC_DAY),),
    ),
    events=(PRICE_CROSSED,),
)
async def btc_price(
    ctx: ToolContext,
    coin: Annotated[
        str,
        Field(
            min_length=1,
            max_length=60,
            description="Symbol, name or id; one of the 250 largest",
            examples=["ETH"],
        ),
        AfterValidator(_spell),
    ] = "BTC",
) -> BtcPrice:
    """The price now of bitcoin, or of any of the 250 largest coins as `coin`, with its change, high, low and traded
    volume of the past 24 hours, and which venue says so. For the biggest moves use crypto_movers.

    Shape: a null field is one the venue does not give; a warning names it. Of several coins with one symbol the
    largest answers; `name` says which. An unknown coin is refused with the most similar names.
    Source: for bitcoin Coinbase, refreshed every 30 seconds; when it is down the first that answers of Kraken,
    Binance, OKX, CoinGecko, Coinlore and Chainlink. For other coins CoinGecko, refreshed every 90 seconds, then
    CoinPaprika and Coinlore.
    """
    if coin == "BTC":
        spot: Spot | CoinUnknown = await ctx.first("data", *btc_spot_fallbacks())
    else:
        spot = await ctx.first("data", *spot_fallbacks(coin, ctx.now))
    if isinstance(spot, CoinUnknown):
        raise _refuse(spot)
    if spot.missing:
        ctx.warn("data", "field_missing", f"{', '.join(spot.missing)}: not known from {spot.venue}.")
    return shown(spot)


def _refuse(unknown: CoinUnknown) -> InvalidArguments:
    meant = f"; did you mean {' or '.join(unknown.similar)}?" if unknown.similar else ""
    message = f"none of the {LARGEST} largest coins has this symbol, name or id{meant}"
    errors = [{"loc": "coin", "msg": message, "type": "unknown_coin"}]
    return InvalidArguments(f"coin: {message}", errors=errors, did_you_mean=unknown.similar)


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
        symbol=spot.symbol,
        name=spot.name,
    )
