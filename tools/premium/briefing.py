"""GET /api/pro/briefing."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tools.parsing.candles import Candle
from tools.parsing.earthquakes import QuakeList
from tools.parsing.fields import percent, price
from tools.parsing.prediction_markets import Bet
from tools.shared import bets, candles, front_page
from tools.shared import crew as roster
from tools.shared.crew import Crew
from tools.shared.mood import FEAR_GREED_SOURCES, IndexName, Mood, fear_greed_fallbacks
from tools.shared.quakes import QUAKE_SOURCES, earthquakes_of, quake_day_fallbacks
from tools.shared.spot import BTC_SPOT_SOURCES, Spot, btc_spot_fallbacks
from toolserver import (
    FREE_SIBLING,
    Fallback,
    Payload,
    Picture,
    Sections,
    Sparse,
    Tier,
    ToolContext,
    TopLevel,
    read_sections,
    tool,
)

HOURS, SHOWN = 24, 5
INCLUDABLE = ("btc", "fear-greed", "earthquakes", "tech-news", "humans-in-space", "predictions")
ALL = ",".join(INCLUDABLE)


def canonical(value: Any) -> str:
    """Return the requested names, each once and in our order. Raises ValueError, also when there is none."""
    listed = value if isinstance(value, list | tuple) else str(value).split(",")
    names = {str(name).strip().casefold() for name in listed} - {""}
    if not names or not names <= {*INCLUDABLE}:
        raise ValueError(f"give any of {ALL.replace(',', ', ')}, separated by commas")
    return ",".join(name for name in INCLUDABLE if name in names)


Include = Annotated[
    str,
    BeforeValidator(canonical),
    Field(
        description="Sections, separated by commas",
        examples=["btc,earthquakes"],
        json_schema_extra={"pattern": "^({0})(,({0}))*$".format("|".join(INCLUDABLE))},
    ),
]


class BtcSection(Payload):
    price_usd: float = Field(gt=0, description="Last price, in the currency of `quote`")
    change_24h_percent: float | None = Field(
        description="Change of the price in about 24 hours, percent; null: the venue does not give it"
    )
    volume_24h: float | None = Field(
        description="Traded in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    high_24h: float | None = Field(
        description="Highest price in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    low_24h: float | None = Field(
        description="Lowest price in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    venue: str = Field(description="Exchange or market page that gave the numbers")
    quote: Literal["USD", "USDT"] = Field(description="Currency of the numbers; USDT is not converted")


class PremiumMoodSection(Payload):
    value: int = Field(ge=0, le=100, description="0 extreme fear, 100 extreme greed")
    label: str = Field(description="The publisher's word for the value")
    source: IndexName = Field(description="Publisher of the index; two publishers' values are not comparable")


class PremiumLatestQuake(Payload):
    magnitude: float = Field(description="Magnitude on the network's preferred scale")
    place: str = Field(description="Place, as the network names it")
    time: int = Field(description="Origin time, Unix milliseconds")


class PremiumQuakeSection(Payload):
    count: int = Field(ge=0, description="Earthquakes of M2.5 and above in 24 hours")
    latest: PremiumLatestQuake | None = Field(description="The newest of them; null: there is none")


class NewsSection(Payload):
    top_story_count: int = Field(ge=0, description="Stories on the front page of Hacker News, at most 30")


class CrewSection(Payload):
    count: int = Field(ge=0, description="People in space")
    names: list[str] = Field(description="Their names, in alphabetical order")


class SectionOutcome(Payload):
    name: str = Field(description="Name of the outcome, Yes or No")
    price: float = Field(ge=0, le=1, description="Price as a probability, 0-1")


class MarketItem(Payload):
    question: str = Field(description="The question, in the market's words")
    volume_24hr: float = Field(ge=0, description="Traded in 24 hours, USD; of Kalshi contracts times the last price")
    outcomes: list[SectionOutcome] = Field(description="Both outcomes with their prices")


class MarketSection(Payload):
    count: int = Field(ge=0, description="Open yes/no markets seen")
    top: list[MarketItem] = Field(max_length=SHOWN, description="Most traded in 24 hours, at most 5")


class BriefingSections(Sparse):
    """Absent: not asked for. Null: no source answered."""

    btc: BtcSection | None = Field(default=None, description="Bitcoin; null: no source answered")
    fear_greed: PremiumMoodSection | None = Field(
        default=None, description="Mood of the crypto market; null: no source answered"
    )
    earthquakes: PremiumQuakeSection | None = Field(
        default=None, description="Earthquakes of the past day; null: no source answered"
    )
    tech_news: NewsSection | None = Field(
        default=None, description="Front page of Hacker News; null: no source answered"
    )
    humans_in_space: CrewSection | None = Field(default=None, description="Who is in space; null: no source answered")
    predictions: MarketSection | None = Field(default=None, description="Prediction markets; null: no source answered")


class HourlyPrice(Payload):
    ts: int = Field(description="Start of the hour, Unix ms")
    price: float = Field(gt=0, description="Last price of the hour, USD")


class BriefingSeries(Payload):
    btc_24h: list[HourlyPrice] | None = Field(
        max_length=HOURS, description="Bitcoin by the hour, hours that are over, oldest first; null: no source answered"
    )


class PremiumBriefing(TopLevel, Sparse):
    sections: BriefingSections = Field(description="The sections that were asked for")
    series: BriefingSeries | None = Field(default=None, description="Prices by the hour; absent without history=24h")
    notes: dict[str, str] = Field(description="Remarks on units, times and indices")


@tool(
    path="/api/pro/briefing",
    title="Premium briefing",
    search_hint="compact figures sections hourly bitcoin history",
    tier=Tier.PREMIUM,
    credits=1,
    ttl_s=60,
    sla_s=300,
    toolset="core",
    tags={FREE_SIBLING: "briefing"},
    sources=(
        *BTC_SPOT_SOURCES,
        *FEAR_GREED_SOURCES,
        *QUAKE_SOURCES,
        *front_page.SOURCES,
        *roster.SOURCES,
        *bets.SOURCES,
        *(source for source in candles.HOUR_SOURCES if source not in BTC_SPOT_SOURCES),
    ),
    pictures=(
        Picture(
            "series",
            "Bitcoin in 24 hours",
            rows="series.btc_24h",
            values=("price",),
            time="ts",
            unit="$",
            arguments={"history": "24h"},
        ),
    ),
)
async def premium_briefing(
    ctx: ToolContext,
    include: Include = ALL,
    history: Annotated[Literal["24h"] | None, Field(description="24h adds hourly bitcoin prices")] = None,
) -> PremiumBriefing:
    """The state of the world as compact figures, one section a topic: bitcoin with its day, crypto fear & greed,
    earthquakes, tech news, people in space, prediction markets; with history=24h also hourly bitcoin prices. Use the
    free briefing for a summary in words.

    Shape: a section that was not asked for is absent; one whose sources are all down is null, with a warning. An
    hour without trade is left out of `series.btc_24h`, never filled.
    Chart: `series.btc_24h`, with history=24h, as a line: x `ts` (Unix ms), y `price` (USD), an hour apart;
    `sections.predictions.top` as bars of `volume_24hr` by `question`.
    Source: those of btc_price, fear_greed, earthquakes, tech_news, humans_in_space and predictions; candles of
    Coinbase, Kraken or Binance, or the rounds of Chainlink. Only the sources of the sections asked for are asked.
    Errors: 400 for an unknown section; 503 when no source of any section answers. Neither is charged.
    """
    fields = include.replace("-", "_").split(",")
    chains = _chains(ctx, fields)
    if history:
        chains["series.btc_24h"] = candles.btc_hours(HOURS)
    sections = await read_sections(ctx, chains)
    sections.require_any()
    included = _show_sections(ctx, sections, fields)
    hours = sections.get("series.btc_24h", lambda past: show_hours(ctx, past))
    payload = PremiumBriefing(sections=included, notes=_notes(included, hours, history))
    return payload.model_copy(update={"series": BriefingSeries(btc_24h=hours)}) if history else payload


def _chains(ctx: ToolContext, fields: Iterable[str]) -> dict[str, tuple[Fallback[Any], ...]]:
    """Return the fallbacks of the sections that were asked for, by their path."""
    chains: dict[str, tuple[Fallback[Any], ...]] = {
        "btc": btc_spot_fallbacks(),
        "fear_greed": fear_greed_fallbacks(),
        "earthquakes": quake_day_fallbacks(ctx.now),
        "tech_news": front_page.front_page(),
        "humans_in_space": roster.crew(),
        "predictions": bets.markets(),
    }
    return {f"sections.{field}": chains[field] for field in fields}


def _show_sections(ctx: ToolContext, sections: Sections, fields: Iterable[str]) -> BriefingSections:
    """Return the sections that were asked for; those that no source answered are null."""
    shown: dict[str, Payload | None] = {
        "btc": sections.get("sections.btc", lambda spot: show_btc(ctx, spot)),
        "fear_greed": sections.get("sections.fear_greed", show_mood),
        "earthquakes": sections.get("sections.earthquakes", show_earthquakes),
        "tech_news": sections.get("sections.tech_news", lambda stories: NewsSection(top_story_count=len(stories))),
        "humans_in_space": sections.get("sections.humans_in_space", lambda crew: show_crew(ctx, crew)),
        "predictions": sections.get("sections.predictions", show_predictions),
    }
    return BriefingSections.model_validate({field: shown[field] for field in fields})


def show_btc(ctx: ToolContext, spot: Spot) -> BtcSection:
    if spot.missing:
        ctx.warn("sections.btc", "field_missing", f"{', '.join(spot.missing)}: not known from {spot.venue}.")
    change, volume = spot.change_24h_percent, spot.volume_24h_usd
    return BtcSection(
        price_usd=price(spot.price_usd),
        change_24h_percent=None if change is None else percent(change),
        volume_24h=None if volume is None else float(round(volume)),
        high_24h=None if spot.high_24h is None else price(spot.high_24h),
        low_24h=None if spot.low_24h is None else price(spot.low_24h),
        venue=spot.venue,
        quote=spot.quote,
    )


def show_mood(index: Mood) -> PremiumMoodSection:
    return PremiumMoodSection(value=index.value, label=index.label, source=index.index_name)


def show_earthquakes(listed: QuakeList) -> PremiumQuakeSection:
    quakes = earthquakes_of(listed)
    if not quakes:
        return PremiumQuakeSection(count=0, latest=None)
    quake, magnitude = quakes[0]
    at = round(quake.time.timestamp() * 1000)
    return PremiumQuakeSection(
        count=len(quakes), latest=PremiumLatestQuake(magnitude=round(magnitude, 1), place=quake.place, time=at)
    )


def show_crew(ctx: ToolContext, crew: Crew) -> CrewSection:
    counted, elsewhere = len(crew.people), crew.listed_elsewhere
    if elsewhere not in (None, counted):
        message = f"One list has {counted} people, the other {elsewhere}; the first is shown."
        ctx.warn("sections.humans_in_space", "disagreement", message)
    return CrewSection(count=counted, names=sorted(person.name for person in crew.people))


def show_predictions(markets: tuple[Bet, ...]) -> MarketSection:
    return MarketSection(count=len(markets), top=[show_market(bet) for bet in markets[:SHOWN]])


def show_market(bet: Bet) -> MarketItem:
    outcomes = [SectionOutcome(name=n, price=round(p, 4)) for n, p in zip(bet.outcomes, bet.prices, strict=True)]
    return MarketItem(question=bet.question, volume_24hr=round(bet.volume_24h_usd, 2), outcomes=outcomes)


def show_hours(ctx: ToolContext, past: tuple[Candle, ...]) -> list[HourlyPrice]:
    if len(past) < HOURS:
        ctx.warn("series.btc_24h", "incomplete_window", f"{HOURS - len(past)} of {HOURS} hours have no candle.")
    return [HourlyPrice(ts=int(c.start.timestamp() * 1000), price=price(c.close)) for c in past]


def _notes(sections: BriefingSections, hours: list[HourlyPrice] | None, history: str | None) -> dict[str, str]:
    notes = {
        "volume": "btc.volume_24h is in USD (in USDT where btc.quote says so), at the venue named.",
        "times": "earthquakes.latest.time and series ts are Unix milliseconds.",
    }
    if sections.fear_greed:
        notes["fear_greed_source"] = f"Index of {sections.fear_greed.source}; other indices differ by several points."
    if history:
        notes["history"] = f"{len(hours or ())} of the {HOURS} newest complete hours; price is each hour's close."
    return notes
