"""GET /api/economic-data."""

import datetime as dt

import anyio
from pydantic import Field

from tools.parsing.fields import significant
from tools.parsing.series import newest, previous
from tools.shared.macro import (
    INDICATORS,
    SOURCES,
    TREASURY_10Y_DAYS,
    MacroIndicator,
    Sourced,
    describe_indicator,
    new_york_date,
    yearly_percent,
)
from toolserver import CardValue, MarketQuote, Payload, SourceEmpty, ToolContext, tool


class Figure(Payload):
    value: float = Field(description="Newest published value, in `unit`")
    date: dt.date = Field(description="The day, or the first day of the month or quarter, it is for")
    unit: str = Field(
        description="Unit of value, previous and change (of change, percentage points where this is percent)"
    )
    previous: float | None = Field(description="Value published before it, for previous_date; null: not known")
    previous_date: dt.date | None = Field(
        description="The day, or the first day of the period, that `previous` is for; null: not known"
    )
    change: float | None = Field(description="value - previous; null without a previous value")
    yoy_percent: float | None = Field(
        description="Only of cpi, as BLS counts it: 12 months of the unadjusted index, percent, one decimal; "
        "null otherwise, and after a gap"
    )
    source: str = Field(description="provider:series")


class EconomicData(Payload):
    fed_rate: Figure | None = Field(description=describe_indicator("fed_rate"))
    cpi: Figure | None = Field(description=describe_indicator("cpi"))
    unemployment: Figure | None = Field(description=describe_indicator("unemployment"))
    gdp_growth: Figure | None = Field(description=describe_indicator("gdp_growth"))
    treasury_10y: Figure | None = Field(description=describe_indicator("treasury_10y"))
    treasury_2y: Figure | None = Field(description=describe_indicator("treasury_2y"))
    mortgage_30y: Figure | None = Field(description=describe_indicator("mortgage_30y"))
    yield_curve_2s10s: Figure | None = Field(description=describe_indicator("yield_curve_2s10s"))


@tool(
    path="/api/economic-data",
    title="U.S. economic indicators",
    search_hint="US unemployment inflation CPI GDP interest mortgage rate right now in the",
    ttl_s=3600,
    sources=SOURCES,
    headline=CardValue(
        "treasury_10y.value",
        "%",
        "US Treasury, 10 years; Fed funds {fed_rate.value} %",
        quotes=(MarketQuote("US Treasury, 10 years", "treasury_10y.value", "%", days=TREASURY_10Y_DAYS),),
    ),
)
async def economic_data(ctx: ToolContext) -> EconomicData:
    """Latest U.S. macro figures: fed funds rate, CPI with yearly change, unemployment, real GDP growth, 2- and
    10-year Treasury yields, 30-year mortgage rate and the 2s10s spread, each with its date and the value before.

    Shape: a figure that no publisher gave is null, with a warning. A month that was never published is a gap:
    `previous` is then older than a month, and `yoy_percent` null when the gap is twelve months back.
    Source: New York Fed, BLS, BEA by way of DBnomics, Treasury and Freddie Mac; FRED when one of them is down.
    """
    figures: dict[str, Figure | None] = dict.fromkeys(INDICATORS)
    today = new_york_date(ctx.now)

    async def read(name: str, indicator: MacroIndicator) -> None:
        sourced = await ctx.section(f"data.{name}", *indicator.fallbacks(today))
        figures[name] = figure(indicator.unit, sourced) if sourced else None

    async with anyio.create_task_group() as tasks:
        for name, indicator in INDICATORS.items():
            tasks.start_soon(read, name, indicator)
    if not any(figures.values()):
        raise SourceEmpty("no publisher answered")
    return EconomicData(**figures)


def figure(unit: str, sourced: Sourced) -> Figure:
    """Return the newest observation of a series with the one before it."""
    last, before = newest(sourced.series), previous(sourced.series)
    return Figure(
        value=significant(last.value),
        date=last.date,
        unit=unit,
        previous=None if before is None else significant(before.value),
        previous_date=None if before is None else before.date,
        change=None if before is None else round(last.value - before.value, 4) + 0.0,
        yoy_percent=yearly_percent(sourced),
        source=sourced.source,
    )
