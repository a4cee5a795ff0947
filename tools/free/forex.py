"""GET /api/forex."""

import datetime as dt
from typing import Literal

from pydantic import Field

from tools.parsing.fields import change_percent, significant
from tools.parsing.series import FxDay
from tools.shared.fx import SOURCES, FxRates, fx_days, usd_fallbacks
from toolserver import CardValue, MarketQuote, Payload, Picture, ToolContext, tool


class PublishedRates(Payload):
    date: dt.date = Field(description="The day that the rates are for")
    rates: dict[str, float] = Field(description="Units of each currency per dollar")


class Forex(Payload):
    base: Literal["USD"] = Field(description="Currency that the rates are for one unit of")
    date: dt.date = Field(description="Newest published day; no weekends or holidays for ecb_reference")
    rates: dict[str, float] = Field(description="Units of each of 16 currencies per dollar", examples=[{"EUR": 0.86}])
    previous: PublishedRates | None = Field(description="The day published before `date`; null: it could not be read")
    change_percent: dict[str, float] | None = Field(
        description="Change of the rate from `previous` to `date`, by currency, percent; null without `previous`"
    )
    kind: Literal["ecb_reference", "market_mid"] = Field(
        description="ecb_reference: the ECB's daily fixing; market_mid: mid-market"
    )


@tool(
    path="/api/forex",
    title="Dollar exchange rates",
    search_hint="convert currency exchange rate how much USD EUR JPY yen rupees in",
    toolset="core",
    ttl_s=300,
    sources=SOURCES,
    headline=CardValue(
        "rates.EUR",
        "EUR",
        "for 1 {base}, {date}",
        change="change_percent.EUR",
        quotes=tuple(
            MarketQuote(f"US dollar in {code}", f"rates.{code}", "", f"change_percent.{code}", fx_days(code))
            for code in ("EUR", "JPY")
        ),
    ),
    pictures=(Picture("bars", "Change of the rate since the day before", rows="change_percent", unit="%"),),
)
async def forex(ctx: ToolContext) -> Forex:
    """Daily US dollar exchange rates to 16 major currencies (EUR, GBP, JPY, CAD, CNY, …): newest published day, the
    published day before it, and the change in percent. Use it to convert or compare currencies; not intraday.

    Shape: a currency the provider does not quote is left out, with a warning.
    Source: ECB reference rates from Frankfurter or the ECB itself; mid-market rates (`kind`) when both are down.
    """
    fx = await ctx.first("data", *usd_fallbacks(ctx.now.date()))
    if fx.missing:
        ctx.warn("data.rates", "field_missing", f"No rate was published for {', '.join(fx.missing)}.")
    if fx.previous is None:
        ctx.warn("data.previous", "field_missing", "The published day before could not be read.")
    return Forex(
        base="USD",
        date=fx.newest.date,
        rates=shown(fx.newest),
        previous=None if fx.previous is None else PublishedRates(date=fx.previous.date, rates=shown(fx.previous)),
        change_percent=changes(fx),
        kind=fx.kind,
    )


def shown(day: FxDay) -> dict[str, float]:
    return {code: significant(rate) for code, rate in day.per_usd.items()}


def changes(fx: FxRates) -> dict[str, float] | None:
    """Return how much more (+) a dollar buys of each currency quoted on both days, in percent."""
    if fx.previous is None:
        return None
    before = fx.previous.per_usd
    return {code: change_percent(rate, before[code]) for code, rate in fx.newest.per_usd.items() if code in before}
