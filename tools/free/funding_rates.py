"""GET /api/funding-rates."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from anyio import Event, gather
from pydantic import Field

from tools.parsing.fields import percent, price, significant
from tools.parsing.funding import Funding, Venue, VenueFundings, largest, list_disagreeing
from tools.sources import binance_futures, okx_funding
from tools.sources.bybit import LINEAR_TICKERS
from tools.sources.dydx import PERPETUAL_MARKETS
from tools.sources.hyperliquid import ASSET_CONTEXTS, PREDICTED_FUNDINGS
from toolserver import (
    CardValue,
    Definition,
    Fallback,
    FallbackReader,
    Meaning,
    Payload,
    Picture,
    Source,
    SourceEmpty,
    SourceError,
    SourceUnproved,
    SourceUnusable,
    Timestamp,
    ToolContext,
    tool,
    up_to,
    via,
)

SHOWN = 20
FEWEST_VENUES = 2
NAMES: tuple[Venue, ...] = ("binance", "bybit", "hyperliquid", "dydx")


class FundingRate(Payload):
    venue: Venue = Field(description="Exchange that trades the contract")
    symbol: str = Field(examples=["BTC-USDT"], description="Perpetual contract: coin-currency")
    period_rate: float = Field(
        description="Rate for the next settlement, a fraction that may still change; positive: longs pay"
    )
    period_hours: float = Field(gt=0, description="Hours between two settlements")
    annualized_percent: float = Field(description="period_rate as a year, simple and not compounded, percent")
    mark_price: float | None = Field(
        description="Price that positions are valued at (dYdX: its oracle's); null: not given"
    )
    next_funding_time: Timestamp | None = Field(description="When the next settlement is due; null: not given")
    predicted: bool = Field(description="True: Hyperliquid's forecast of it, as the venue itself did not answer")
    settled: Literal[False] = Field(description="Always false: a rate moves until next_funding_time, and is paid then")


class VenueState(Payload):
    name: Venue = Field(description="Exchange")
    status: Literal["ok", "predicted", "replaced", "unavailable"] = Field(
        description="predicted: by Hyperliquid's forecast; replaced: by OKX; unavailable: not compared"
    )
    markets: int | None = Field(description="Contracts compared; null: the venue gave none")


class FundingRates(Payload):
    top: list[FundingRate] = Field(max_length=SHOWN, description="Largest annualized rate of either sign first")
    venues: list[VenueState] = Field(description="The exchanges, and which of them were compared")


@tool(
    path="/api/funding-rates",
    title="Perpetual funding rates",
    search_hint="where is highest funding on perps perpetual futures leverage long short",
    ttl_s=60,
    sources=(
        binance_futures.PREMIUMS,
        binance_futures.INTERVALS,
        LINEAR_TICKERS,
        ASSET_CONTEXTS,
        PERPETUAL_MARKETS,
        okx_funding.FUNDING_RATES,
        okx_funding.MARK_PRICES,
        PREDICTED_FUNDINGS,
    ),
    headline=CardValue("top.0.annualized_percent", "%", "a year, {top.0.symbol} at {top.0.venue}", is_series=False),
    pictures=(
        Picture(
            "bars",
            "The widest funding rates, as a year",
            rows="top",
            values=("annualized_percent",),
            label="symbol",
            unit="%",
        ),
    ),
)
async def funding_rates(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> FundingRates:
    """The 20 perpetual crypto futures with the largest funding rates, annualized, across Binance, Bybit, Hyperliquid
    and dYdX. Use it for "where is leverage most one-sided?" or to compare carry; for spot prices use crypto_movers.

    Shape: sorted by the size of the annualized rate, which is simple, not compounded. `venues` says which venues
    were compared; OKX replaces Binance or Bybit when one of them is down, Hyperliquid's forecast the other one.
    Errors: no data unless two venues answer.
    """
    answers = await _ask_venues(ctx)
    venues = [venue for venue in answers if venue is not None]
    for venue in list_disagreeing(venues):
        said = "Its prices are not those of the other venues, so that its rates are of another time; it is left out."
        ctx.warn(f"data.venues.{venue.venue}", "disagreement", f"{venue.venue}: {said}")
        venues.remove(venue)
    answers = [venue if venue in venues else None for venue in answers]
    if len(venues) < FEWEST_VENUES:
        raise SourceEmpty(f"{len(venues)} of {len(NAMES)} venues answered")
    if not any(is_of_now(funding, ctx.now) for venue in venues for funding in venue.fundings):
        raise SourceUnproved("no venue with a timestamp answered")
    if any(venue.venue == "okx" and not any(f.mark_price for f in venue.fundings) for venue in venues):
        ctx.warn("data.top", "field_missing", "OKX gave rates without mark prices.", okx_funding.MARK_PRICES.name)
    top = ctx.page(largest(venues, SHOWN), limit, "data.top")
    return FundingRates(top=[_row(*pair) for pair in top], venues=_states(answers))


FUNDING = (
    Meaning(
        "funding-rates.period_rate",
        "The rate of the next settlement, of the period that runs now: Binance, Bybit and OKX publish it as it moves, "
        "Hyperliquid for the running hour, dYdX as a forecast of the coming hour. None of them is settled",
        definition=Definition(publisher="Binance, Bybit, OKX, Hyperliquid and dYdX"),
    ),
    Meaning(
        "funding-rates.predicted",
        "True of rates that Hyperliquid forecasts for another venue, which did not answer. The venue's own rate, for "
        "which it is false, is not settled either",
    ),
    Meaning(
        "funding-rates.annualized_percent",
        "The rate times the settlements of 8760 hours, simple and not compounded",
        decide=lambda row: percent(Funding("BTC-USDT", row[0], row[1], None, None).annualized_percent),
        rows=(
            ((0.0001, 8), 10.95),
            ((0.0000125, 1), 10.95),
            ((0.0001, 4), 21.9),
            ((-0.0001, 8), -10.95),
        ),
    ),
)


def is_of_now(funding: Funding, now: datetime) -> bool:
    """Return True if a time proves that the rate is current: that of the rate, or a settlement in the future."""
    return funding.at is not None or (funding.next_at is not None and funding.next_at > now)


async def _ask_venues(ctx: ToolContext) -> Sequence[VenueFundings | None]:
    """Return one entry per name of `NAMES`. OKX replaces one venue only, so Bybit's turn waits for Binance's result."""
    settled = Event()
    first: list[VenueFundings | None] = []

    async def binance() -> VenueFundings | None:
        try:
            first.append(await ctx.section("data.venues.binance", _binance, _okx, _forecast("binance")))
        finally:
            settled.set()
        return first[0]

    async def okx_if_free(reading: FallbackReader) -> VenueFundings:
        await settled.wait()
        if any(replacement and replacement.venue == "okx" for replacement in first):
            raise SourceUnusable("OKX already replaces Binance")
        return await _okx(reading)

    return await gather(
        binance(),
        ctx.section("data.venues.bybit", _own("bybit", LINEAR_TICKERS), okx_if_free, _forecast("bybit")),
        ctx.section("data.venues.hyperliquid", _own("hyperliquid", ASSET_CONTEXTS)),
        ctx.section("data.venues.dydx", _own("dydx", PERPETUAL_MARKETS)),
    )


def _own(name: Venue, source: Source[None, tuple[Funding, ...]]) -> Fallback[VenueFundings]:
    return via(source, None, lambda fundings: VenueFundings(name, fundings))


async def _binance(reading: FallbackReader) -> VenueFundings:
    premiums = await reading.read(binance_futures.PREMIUMS)
    intervals = await reading.read(binance_futures.INTERVALS)
    return VenueFundings("binance", binance_futures.fundings(premiums, intervals))


async def _okx(reading: FallbackReader) -> VenueFundings:
    fundings = await reading.read(okx_funding.FUNDING_RATES)
    try:
        marks = await reading.read(okx_funding.MARK_PRICES)
    except SourceError:
        marks = {}
    return VenueFundings("okx", okx_funding.with_marks(fundings, marks))


def _forecast(name: Venue) -> Fallback[VenueFundings]:
    def of_venue(venues: tuple[VenueFundings, ...]) -> VenueFundings:
        forecast = {venue.venue: venue for venue in venues}[name]
        if not forecast.fundings:
            raise LookupError(f"no forecast for {name}")
        return forecast

    return via(PREDICTED_FUNDINGS, None, of_venue)


def _row(venue: VenueFundings, funding: Funding) -> FundingRate:
    return FundingRate(
        venue=venue.venue,
        symbol=funding.symbol,
        period_rate=significant(funding.period_rate),
        period_hours=funding.period_hours,
        annualized_percent=percent(funding.annualized_percent),
        mark_price=None if funding.mark_price is None else price(funding.mark_price),
        next_funding_time=funding.next_at,
        predicted=venue.predicted,
        settled=False,
    )


def _states(answers: Sequence[VenueFundings | None]) -> list[VenueState]:
    states = [_state(name, answer) for name, answer in zip(NAMES, answers, strict=True)]
    okx = [VenueState(name="okx", status="ok", markets=len(v.fundings)) for v in answers if v and v.venue == "okx"]
    return states + okx


def _state(name: Venue, answer: VenueFundings | None) -> VenueState:
    if answer is None:
        return VenueState(name=name, status="unavailable", markets=None)
    if answer.venue != name:
        return VenueState(name=name, status="replaced", markets=None)
    return VenueState(name=name, status="predicted" if answer.predicted else "ok", markets=len(answer.fundings))
