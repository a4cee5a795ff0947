"""GET /api/pro/macro."""

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.parsing.fields import price, significant
from tools.parsing.series import Series, newest
from tools.shared import fx, markets
from tools.shared import macro as indicators
from tools.shared.fx import FxRates
from tools.shared.macro import INDICATORS, Sourced, describe_indicator, new_york_date, yearly_percent
from tools.shared.markets import Freshness, Gold, IndexQuote, Kind, Priced
from tools.sources.freddiemac import PMMS_30Y
from toolserver import (
    FREE_SIBLING,
    Fallback,
    Payload,
    Picture,
    Sections,
    Sparse,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    convert_fallback,
    read_sections,
    tool,
)

LONGEST = 30  # observations of a series
CODES = ("EUR", "JPY", "GBP", "CHF")
FREQUENCIES = {
    "fed_rate": "daily", "cpi": "monthly", "unemployment": "monthly", "gdp_growth": "quarterly",
    "treasury_10y": "daily",
}  # fmt: skip
FUNDS = {"spy": "SPY", "dia": "DIA", "qqq": "QQQ", "vix": "VIX"}
KINDS: dict[Kind, str] = {"spot": "spot", "token": "a token for one ounce", "futures": "nearest future, not spot"}


class DatedValue(Payload):
    date: dt.date = Field(description="The day, or the first day of the period, that the value is for")
    value: float = Field(description="Value as published")


class EconomicFigure(Sparse):
    value: float | None = Field(description="Newest published value, in `unit`; null: not published")
    date: dt.date = Field(description="The day, or the first day of the month or quarter, it is for")
    source: str = Field(description="provider:series")
    unit: str = Field(description="Unit of the value")
    yoy_percent: float | None = Field(
        default=None,
        description="Of cpi, as BLS counts it: 12 months of the unadjusted index, percent, one decimal; null after a "
        "gap; absent from the others",
    )
    series: list[DatedValue] | None = Field(
        default=None,
        max_length=LONGEST,
        description="Newest 30 at its own frequency, oldest first; absent without history=30d",
    )


class EconomicFigures(Payload):
    fed_rate: EconomicFigure | None = Field(description=describe_indicator("fed_rate"))
    cpi: EconomicFigure | None = Field(description=describe_indicator("cpi"))
    unemployment: EconomicFigure | None = Field(description=describe_indicator("unemployment"))
    gdp_growth: EconomicFigure | None = Field(description=describe_indicator("gdp_growth"))
    treasury_10y: EconomicFigure | None = Field(description=describe_indicator("treasury_10y"))


class DollarRates(Sparse):
    base: Literal["USD"] = Field(description="Currency that the rates are for one unit of")
    date: dt.date = Field(description="Newest published day")
    rates: dict[str, float] = Field(description="Units of EUR, JPY, GBP and CHF per dollar")
    kind: Literal["ecb_reference", "market_mid"] = Field(
        description="ecb_reference: the ECB's daily fixing; market_mid: mid-market"
    )
    series: dict[str, list[DatedValue]] | None = Field(
        default=None, description="Newest 30 published days by currency, oldest first; absent without history=30d"
    )


class GoldPriced(Payload):
    price_usd: float = Field(gt=0, description="Price of a troy ounce, USD")
    source: str = Field(description="provider:series")
    as_of: Timestamp = Field(description="Time of the price")


class CommodityPriced(Payload):
    price_usd: float = Field(description="Price of a barrel of oil or a million Btu of gas, USD")
    date: dt.date = Field(description="The day that the price is for, often a week ago")
    source: str = Field(description="provider:series")


class Commodities(Payload):
    gold: GoldPriced | None = Field(
        description="Spot, a token for an ounce or the nearest future, as `notes` says; null: no source answered"
    )
    silver: GoldPriced | None = Field(description="Always null: there is no source")
    oil: CommodityPriced | None = Field(description="West Texas Intermediate; null: no source answered")
    nat_gas: CommodityPriced | None = Field(description="Natural gas at Henry Hub; null: no source answered")


class MarketFigure(Payload):
    price: float = Field(gt=0, description="Last price, USD; points for the VIX")
    change: float = Field(description="price less the previous close")
    change_percent: float = Field(description="Change against the previous close, percent")
    as_of: Timestamp | None = Field(description="Time of the price; null: the provider does not give it")
    source: str = Field(description="provider:symbol")
    freshness: Freshness = Field(
        description="Whether the price is current, delayed or the last close, as far as the provider says"
    )


class Markets(Payload):
    spy: MarketFigure | None = Field(description="Fund of the S&P 500; null: no source answered")
    dia: MarketFigure | None = Field(description="Fund of the Dow; null: no source answered")
    qqq: MarketFigure | None = Field(description="Fund of the Nasdaq 100; null: no source answered")
    vix: MarketFigure | None = Field(description="Cboe's index of expected volatility; null: no source answered")


class PremiumMacro(TopLevel):
    economic: EconomicFigures = Field(description="U.S. figures")
    forex: DollarRates | None = Field(description="Dollar rates; null: no source answered")
    commodities: Commodities = Field(description="Gold, oil and gas")
    markets: Markets = Field(description="Three funds and the VIX")
    notes: dict[str, str] = Field(description="Remarks on dates, kinds of price and licences")


SOURCES = tuple(
    dict.fromkeys(
        source
        for source in (
            *indicators.SOURCES,
            *fx.SOURCES,
            *markets.GOLD_SOURCES,
            *markets.OIL_SOURCES,
            *markets.GAS_SOURCES,
            *markets.VIX_SOURCES,
        )
        if source is not PMMS_30Y
    )
)


@tool(
    path="/api/pro/macro",
    title="Macro dashboard",
    search_hint="one dashboard of interest rates gold oil dollar commodities economy indices",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=300,
    sla_s=1800,
    toolset="core",
    tags={FREE_SIBLING: "economic_data"},
    sources=SOURCES,
    pictures=(
        Picture("board", "Economy", rows="economic", values=("value",), label="unit", time="date"),
        Picture("board", "Markets", rows="markets", values=("price", "change_percent"), time="as_of"),
        Picture("board", "Commodities", rows="commodities", values=("price_usd",), time="as_of|date", unit="$"),
        Picture("board", "A dollar in other currencies", rows="forex.rates"),
        Picture(
            "series",
            "Economic series",
            rows="economic.*.series",
            values=("value",),
            time="date",
            arguments={"history": "30d"},
        ),
        Picture(
            "series",
            "A dollar in the past 30 days",
            rows="forex.series.*",
            values=("value",),
            time="date",
            arguments={"history": "30d"},
        ),
    ),
)
async def premium_macro(
    ctx: ToolContext,
    history: Annotated[
        Literal["30d"] | None, Field(description="30d adds the 30 newest observations of each figure and rate")
    ] = None,
) -> PremiumMacro:
    """The macro picture in one call: U.S. fed funds rate, CPI, unemployment, GDP growth and 10-year yield, the dollar
    against EUR, JPY, GBP and CHF, gold, oil and natural gas, and SPY, DIA, QQQ and VIX; with history=30d also series.

    Shape: what no provider gave is null, with a warning. A series has its own frequency: 30 observations of a monthly
    figure are 30 months. Values are as published; a value that was never published is a gap. Silver is always null.
    Chart: with history=30d every `economic.*.series` and `forex.series.*` as a line: x `date`, y `value` in the
    figure's `unit`, oldest first; without it `markets` as bars of `change_percent`.
    Source: New York Fed, BLS, BEA, Treasury and FRED; ECB; Gold-API, Kraken, Chainlink, EIA by way of FRED or DataHub;
    CNBC, Yahoo and Cboe. Each figure names its own in `source`.
    Errors: 503 when no source answers, not charged.
    """
    sections = await read_sections(ctx, _chains(ctx.now))
    sections.require_any()
    return PremiumMacro(
        economic=EconomicFigures.model_validate(
            {name: sections.get(f"economic.{name}", _figure(name, history)) for name in FREQUENCIES}
        ),
        forex=sections.get("forex", lambda rates: dollar(ctx, rates, history)),
        commodities=Commodities(
            gold=sections.get("commodities.gold", gold_price),
            silver=None,
            oil=sections.get("commodities.oil", commodity_price),
            nat_gas=sections.get("commodities.nat_gas", commodity_price),
        ),
        markets=Markets.model_validate({name: sections.get(f"markets.{name}", market_figure) for name in FUNDS}),
        notes=_notes(sections, history),
    )


def _chains(now: dt.datetime) -> dict[str, tuple[Fallback[Any], ...]]:
    """Return every section by its path."""
    today = new_york_date(now)
    return {
        **{f"economic.{name}": INDICATORS[name].fallbacks(today) for name in FREQUENCIES},
        "forex": tuple(convert_fallback(fallback, four) for fallback in fx.usd_fallbacks(now.date())),
        "commodities.gold": markets.gold_fallbacks(),
        "commodities.oil": markets.oil_fallbacks(today),
        "commodities.nat_gas": markets.gas_fallbacks(today),
        **{f"markets.{name}": markets.market_fallbacks(symbol) for name, symbol in FUNDS.items()},
    }


def _figure(name: str, history: str | None) -> Callable[[Sourced], EconomicFigure]:
    def shown(sourced: Sourced) -> EconomicFigure:
        last = newest(sourced.series)
        figure = EconomicFigure(
            value=significant(last.value), date=last.date, source=sourced.source, unit=INDICATORS[name].unit
        )
        if name == "cpi":
            figure = figure.model_copy(update={"yoy_percent": yearly_percent(sourced)})
        return figure.model_copy(update={"series": dated(sourced.series[-LONGEST:])}) if history else figure

    return shown


def dated(pairs: Iterable[tuple[dt.date, float]]) -> list[DatedValue]:
    return [DatedValue(date=day, value=significant(value)) for day, value in pairs]


def four(rates: FxRates) -> FxRates:
    """Return the rates if the newest day quotes one of our four currencies. Raises LookupError otherwise."""
    if not any(code in rates.newest.per_usd for code in CODES):
        raise LookupError("none of the four currencies")
    return rates


def dollar(ctx: ToolContext, rates: FxRates, history: str | None) -> DollarRates:
    per_usd = rates.newest.per_usd
    missing = [code for code in CODES if code not in per_usd]
    if missing:
        ctx.warn("forex.rates", "field_missing", f"No rate was published for {', '.join(missing)}.")
    quoted = {code: significant(per_usd[code]) for code in CODES if code in per_usd}
    dollars = DollarRates(base="USD", date=rates.newest.date, rates=quoted, kind=rates.kind)
    return dollars.model_copy(update={"series": rate_series(ctx, rates)}) if history else dollars


def rate_series(ctx: ToolContext, rates: FxRates) -> dict[str, list[DatedValue]]:
    """Return each currency on the newest published days, without days that do not quote it."""
    days = rates.days[-LONGEST:]
    if len(days) < LONGEST:
        ctx.warn("forex.series", "incomplete_window", f"Only {len(days)} of {LONGEST} published days are known.")
    by_code = {code: [(day.date, day.per_usd[code]) for day in days if code in day.per_usd] for code in CODES}
    return {code: dated(pairs) for code, pairs in by_code.items() if pairs}


def gold_price(gold: Gold) -> GoldPriced:
    return GoldPriced(price_usd=price(gold.price_usd), source=gold.source, as_of=gold.as_of)


def commodity_price(priced: Priced) -> CommodityPriced:
    return CommodityPriced(price_usd=significant(priced.price_usd), date=priced.date, source=priced.source)


def market_figure(quote: IndexQuote) -> MarketFigure:
    return MarketFigure(**quote._asdict())


def _notes(sections: Sections, history: str | None) -> dict[str, str]:
    dates = {name: sections.get(f"economic.{name}", lambda read: newest(read.series).date) for name in FREQUENCIES}
    priced = {
        name: sections.get(f"commodities.{name}", lambda read: KINDS[read.kind]) for name in ("gold", "oil", "nat_gas")
    }
    vix = sections.get("markets.vix", lambda quote: quote.freshness.replace("_", " "))
    notes = {
        "cadence": "; ".join(f"{name} {FREQUENCIES[name]}, newest {day or 'unknown'}" for name, day in dates.items()),
        "silver": "No source: always null.",
        "commodities": "; ".join(f"{name}: {kind or 'unavailable'}" for name, kind in priced.items()),
        "vix": f"Freshness of the value: {vix}." if vix else "Unavailable.",
        "licence": "Licence class and terms of each source are in _meta.sources; some bar redistribution.",
    }
    if history:
        spans = {
            name: sections.get(f"economic.{name}", lambda read: _span(read.series[-LONGEST:])) for name in FREQUENCIES
        }
        covered = "; ".join(f"{name} {span}" for name, span in spans.items() if span)
        notes["history"] = (
            f"The {LONGEST} newest observations of each series at its own frequency, oldest first, not {LONGEST} days"
            f" where that is monthly or quarterly: {covered}."
        )
    return notes


def _span(series: Series) -> str:
    """Describe the number and the dates of observations: `30 from 2024-07-01 to 2026-12-01`."""
    shown = series[-LONGEST:]
    return f"{len(shown)} from {shown[0].date} to {shown[-1].date}"
