"""GET /api/pro/correlation-matrix."""

import datetime as dt
from collections.abc import Callable
from itertools import combinations
from typing import Literal, NamedTuple

from pydantic import Field

from tools.parsing.series import Series
from tools.shared import correlation
from tools.shared.correlation import LEAST, RETURNS, Direction, Relationship, Step, difference, simple_return
from tools.shared.macro import INDICATORS, Fallbacks, Sourced, new_york_date
from tools.shared.markets import DOLLAR_SOURCES, OIL_SERIES_SOURCES, dollar_index_fallbacks, oil_series_fallbacks
from tools.sources.treasury import PAR_YIELDS
from toolserver import FREE_SIBLING, Payload, Picture, Tier, ToolContext, TopLevel, read_sections, tool

AssetClass = Literal["commodity", "rates", "fx"]
SPAN = dt.timedelta(days=75)
TOO_OLD = dt.timedelta(days=28)
METHOD = (
    "Pearson correlation of daily simple returns over up to 30 return days; dates aligned pairwise (days observed in"
    " both series, each return spans the same two dates); pearson_r_yield_diff replaces simple returns of yields by"
    " first differences."
)


class Asset(NamedTuple):
    """An asset to compare: its class, and its chain on a day."""

    asset_class: AssetClass
    fallbacks: Callable[[dt.date], Fallbacks]

    @property
    def step(self) -> Step:
        """The daily change in the usual measure of the class: percentage points of a yield, a share of a price."""
        return difference if self.asset_class == "rates" else simple_return


ASSETS = {
    "OIL_WTI": Asset("commodity", oil_series_fallbacks),
    "TREASURY_10Y": Asset("rates", INDICATORS["treasury_10y"].fallbacks),
    "TREASURY_2Y": Asset("rates", INDICATORS["treasury_2y"].fallbacks),
    "USD_INDEX": Asset("fx", dollar_index_fallbacks),
}


class AssetItem(Payload):
    symbol: str = Field(description="Our symbol of the asset")
    asset_class: AssetClass = Field(description="Class of the asset; yields are also compared by differences")
    observations: int = Field(ge=0, description="Published days in the last 75 days; 0: no source answered")
    first_date: dt.date | None = Field(description="The first of these days; null: none")
    last_date: dt.date | None = Field(description="The last of these days; null: none")
    source: str | None = Field(description="provider:series; null: no source answered")


class PairItem(Payload):
    a: str = Field(description="Symbol of the first asset")
    b: str = Field(description="Symbol of the second asset")
    pearson_r: float = Field(ge=-1, le=1, description="Pearson's r of daily percentage changes, -1 to 1")
    n_observations: int = Field(ge=LEAST, le=RETURNS, description="Returns that both have, at most 30")
    relationship: Relationship = Field(
        description="Our word for the size of r: weak from 0.2, moderate 0.4, strong 0.7"
    )
    direction: Direction = Field(description="Sign of r; none below 0.05")
    pearson_r_yield_diff: float | None = Field(
        ge=-1, le=1, description="r with the changes of yields in percentage points; null: a pair without a yield"
    )
    first_date: dt.date = Field(description="Day of the first common return")
    last_date: dt.date = Field(description="Day of the last common return")


class SampleSize(Payload):
    assets_requested: int = Field(description="Assets compared")
    assets_with_data: int = Field(description="Assets that a source answered for")
    pairs_computed: int = Field(description="Pairs with at least ten common returns")
    data_availability: dict[str, int] = Field(description="Published days by symbol")


class CorrelationMatrix(TopLevel):
    window: Literal["30d"] = Field(description="Returns looked at, at most 30 days")
    method: str = Field(description="How r is computed")
    assets: list[AssetItem] = Field(description="The assets, in a fixed order")
    pairs: list[PairItem] = Field(description="Largest |r| first")
    matrix: dict[str, dict[str, float | None]] = Field(
        description="pearson_r by symbol and symbol; null: too few common returns"
    )
    sample_size: SampleSize = Field(description="How much the correlations rest on")
    notes: dict[str, str] = Field(description="Remarks on dates, yields and significance")


@tool(
    path="/api/pro/correlation-matrix",
    title="Correlation matrix",
    search_hint="correlated correlation of oil and dollar yields how the move together",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=1800,
    sla_s=3600,
    toolset="core",
    tags={FREE_SIBLING: "economic_data"},
    sources=tuple(dict.fromkeys((*OIL_SERIES_SOURCES, PAR_YIELDS, *DOLLAR_SOURCES))),
    pictures=(Picture("matrix", "Correlation of daily returns", rows="matrix"),),
)
async def premium_correlation_matrix(ctx: ToolContext) -> CorrelationMatrix:
    """30-day Pearson correlations between oil (WTI), the 10- and 2-year Treasury yields and the broad dollar index,
    from daily returns aligned by date: ranked pairs with strength and direction, and a lookup matrix. Use it to see
    what moves together; it says nothing about causes.

    Shape: four assets, six pairs; a pair with fewer than ten common returns is left out and null in the matrix, with
    a warning. An asset without a source is listed with 0 observations.
    Chart: `matrix` as a heat map: a row and a column for each symbol, from -1 to 1, null left blank; `pairs` as bars of
    `pearson_r`, as they come.
    Source: EIA by way of FRED or DataHub, U.S. Treasury, the Federal Reserve's H.10 release by way of FRED or itself.
    Errors: 503 when no source answers, not charged; an answer without any pair is not charged either.
    """
    today = new_york_date(ctx.now)
    sections = await read_sections(ctx, {f"assets.{name}": asset.fallbacks(today) for name, asset in ASSETS.items()})
    sections.require_any()
    series = {name: sections.get(f"assets.{name}", lambda read: _recent(read, today)) for name in ASSETS}
    pairs = compared(ctx, {name: read.series for name, read in series.items() if read is not None})
    if not pairs:
        ctx.mark_empty()
    if pairs and min(pair.last_date for pair in pairs) < today - TOO_OLD:
        ctx.judge_stale(True)
        ctx.warn("pairs", "stale_data", f"The newest common day of a pair is more than {TOO_OLD.days} days ago.")
    assets = [_asset(name, read) for name, read in series.items()]
    return CorrelationMatrix(
        window="30d",
        method=METHOD,
        assets=assets,
        pairs=pairs,
        matrix=matrix(pairs),
        sample_size=SampleSize(
            assets_requested=len(ASSETS),
            assets_with_data=sum(asset.observations > 0 for asset in assets),
            pairs_computed=len(pairs),
            data_availability={asset.symbol: asset.observations for asset in assets},
        ),
        notes=_notes(pairs),
    )


def _recent(read: Sourced, today: dt.date) -> Sourced:
    return Sourced(correlation.since(read.series, today - SPAN), read.source)


def compared(ctx: ToolContext, series: dict[str, Series]) -> list[PairItem]:
    """Return every pair that can be computed, the strongest first; a warning for each other pair."""
    pairs = []
    for a, b in combinations(series, 2):
        pair = compare(a, b, series[a], series[b])
        if pair is None:
            message = f"{a} and {b} have fewer than {LEAST} common returns, or one of them stands still."
            ctx.warn(f"pairs.{a}.{b}", "insufficient_sample", message)
        else:
            pairs.append(pair)
    return sorted(pairs, key=lambda pair: -abs(pair.pearson_r))


def compare(a: str, b: str, one: Series, other: Series) -> PairItem | None:
    """Compare two assets; None when there are too few values."""
    pair = correlation.align(one, other)
    returns = correlation.steps(pair)
    r = correlation.pearson(returns)
    if r is None:
        return None
    rates = "rates" in (ASSETS[a].asset_class, ASSETS[b].asset_class)
    by_difference = correlation.pearson(correlation.steps(pair, ASSETS[a].step, ASSETS[b].step)) if rates else None
    return PairItem(
        a=a,
        b=b,
        pearson_r=r,
        n_observations=len(returns.dates),
        relationship=correlation.relationship(r),
        direction=correlation.direction(r),
        pearson_r_yield_diff=by_difference,
        first_date=returns.dates[0],
        last_date=returns.dates[-1],
    )


def matrix(pairs: list[PairItem]) -> dict[str, dict[str, float | None]]:
    """Return r by symbol and symbol: symmetric, 1 on the diagonal, null where there is no pair."""
    coefficients = {frozenset((pair.a, pair.b)): pair.pearson_r for pair in pairs}
    return {a: {b: 1.0 if a == b else coefficients.get(frozenset((a, b))) for b in ASSETS} for a in ASSETS}


def _asset(name: str, read: Sourced | None) -> AssetItem:
    days = [day for day, _ in read.series] if read else []
    return AssetItem(
        symbol=name,
        asset_class=ASSETS[name].asset_class,
        observations=len(days),
        first_date=days[0] if days else None,
        last_date=days[-1] if days else None,
        source=read.source if read else None,
    )


def _notes(pairs: list[PairItem]) -> dict[str, str]:
    newest = max((pair.last_date for pair in pairs), default=None)
    return {
        "as_of": f"Newest common date: {newest or 'none'}. The dollar index and the oil price are published once a"
        " week, so pairs with them lag by up to two weeks.",
        "alignment": "By date, pair by pair: a day that is missing from one of the two series is used for neither.",
        "yields": "pearson_r takes yields like prices, by percentage change; pearson_r_yield_diff takes their change in"
        " percentage points, the usual measure.",
        "caution": "With 30 returns, |r| below 0.36 cannot be distinguished from 0 at the 5 % level.",
    }
