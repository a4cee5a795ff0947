"""GET /api/briefing."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from anyio import gather
from pydantic import Field

from tools.parsing.earthquakes import QuakeList
from tools.parsing.fields import percent, price
from tools.shared import bets, front_page
from tools.shared.bets import BetItem
from tools.shared.front_page import StoryItem
from tools.shared.mood import FEAR_GREED_SOURCES, Mood, fear_greed_fallbacks
from tools.shared.quakes import QUAKE_SOURCES, earthquakes_of, quake_day_fallbacks
from tools.shared.spot import BTC_SPOT_SOURCES, Spot, btc_spot_fallbacks
from tools.shared.status import MAJOR_SOURCES, MAJORS, ServiceItem, check_pages
from toolserver import Payload, Picture, SourceError, Timestamp, ToolContext, TopLevel, tool, up_to

T = TypeVar("T")

SHOWN = 5
LONGEST = 400  # characters of a summary
CAPS = (60, 45, 30)  # for third-party text in it: the widest cap that fits


class CryptoSection(Payload):
    """Bitcoin."""

    price_usd: float = Field(gt=0, description="Last trade of bitcoin, in the currency of `quote`")
    change_24h_percent: float | None = Field(
        description="Change of the price in 24 hours, percent; null: the venue does not give it"
    )
    volume_24h_usd: float | None = Field(
        description="Traded in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    quote: Literal["USD", "USDT"] = Field(description="Currency of the price; USDT is not converted")


class MoodSection(Payload):
    value: int = Field(ge=0, le=100, description="Fear & Greed: 0 extreme fear, 100 extreme greed")
    label: str = Field(description="The publisher's word for the value")


class LatestQuake(Payload):
    magnitude: float = Field(description="Magnitude on the network's preferred scale")
    location: str = Field(description="Place, as the network names it")
    time: Timestamp = Field(description="Origin time")


class QuakeSection(Payload):
    count: int = Field(ge=0, description="Earthquakes of M2.5 and above in 24 hours")
    latest: LatestQuake | None = Field(description="The newest of them; null: there is none")


class FreeBriefingSections(Payload):
    crypto: CryptoSection | None = Field(description="Bitcoin; null: no source answered")
    fear_greed: MoodSection | None = Field(description="Mood of the crypto market; null: no source answered")
    earthquakes: QuakeSection | None = Field(description="Earthquakes of the past day; null: no source answered")
    predictions: list[BetItem] | None = Field(
        description="Most traded prediction markets, at most 5; null: no source answered"
    )
    news: list[StoryItem] | None = Field(description="Top of Hacker News, at most 5 stories; null: no source answered")
    services: list[ServiceItem] | None = Field(
        description="GitHub, Cloudflare, OpenAI and Anthropic; null: no status page answered"
    )


class Briefing(TopLevel):
    generated_at: Timestamp = Field(description="When the briefing was composed")
    summary: str = Field(max_length=LONGEST, description="The sections in words, with those that are missing")
    sections: FreeBriefingSections = Field(description="The figures behind the summary, one member a topic")


@tool(
    path="/api/briefing",
    title="Briefing",
    search_hint="quick overview summary rundown of today's news and markets give me a",
    toolset="core",
    ttl_s=60,
    sources=(
        *BTC_SPOT_SOURCES,
        *FEAR_GREED_SOURCES,
        *QUAKE_SOURCES,
        *bets.SOURCES,
        *front_page.SOURCES,
        *MAJOR_SOURCES,
    ),
    pictures=(
        Picture("text", "In words", rows="summary"),
        Picture("grid", "State of each service", rows="sections.services", values=("status",), label="name"),
        Picture(
            "bars",
            "Chance of yes",
            rows="sections.predictions",
            values=("yes_percent",),
            label="question",
            unit="%",
        ),
    ),
)
async def briefing(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> Briefing:
    """The state of the world in one call: bitcoin price, crypto fear & greed, earthquakes, prediction markets, tech
    news and the status of GitHub, Cloudflare, OpenAI and Anthropic, with a summary in words. Use it first; for
    more, use the tool of the topic.

    Shape: at most 5 markets and 5 stories. A section whose sources are all down is null, and the summary says so.
    Source: those of btc_price, fear_greed, earthquakes, predictions, tech_news and service_status.
    """
    parts = await gather(
        ctx.attempt("sections.crypto", *btc_spot_fallbacks()),
        ctx.attempt("sections.fear_greed", *fear_greed_fallbacks()),
        ctx.attempt("sections.earthquakes", *quake_day_fallbacks(ctx.now)),
        ctx.attempt("sections.predictions", *bets.shown_markets()),
        ctx.attempt("sections.news", *front_page.front_page()),
        _services(ctx),
    )
    errors = [part for part in parts if isinstance(part, SourceError)]
    if len(errors) == len(parts):
        raise errors[0]
    crypto, mood, quakes, markets, stories, services = parts
    sections = FreeBriefingSections(
        crypto=_shown(crypto, lambda spot: _crypto(ctx, spot)),
        fear_greed=_shown(mood, _mood),
        earthquakes=_shown(quakes, _earthquakes),
        predictions=_shown(
            markets,
            lambda bets_seen: [
                bets.show_bet(bet) for bet in ctx.page(bets_seen[:SHOWN], limit, "sections.predictions")
            ],
        ),
        news=_shown(stories, lambda listed: ctx.page(listed[:SHOWN], limit, "sections.news")),
        services=_shown(services, list),
    )
    return Briefing(generated_at=ctx.now, summary=summary(sections), sections=sections)


async def _services(ctx: ToolContext) -> list[ServiceItem] | SourceError:
    try:
        return await check_pages(ctx, MAJORS, "sections.services")
    except SourceError as error:
        return error


def _shown(part: Any, make: Callable[[Any], T]) -> T | None:
    return None if isinstance(part, SourceError) else make(part)


def _crypto(ctx: ToolContext, spot: Spot) -> CryptoSection:
    change, volume = spot.change_24h_percent, spot.volume_24h_usd
    missing = [name for name in ("change_24h_percent", "volume_24h_usd") if name in spot.missing]
    if missing:
        ctx.warn("sections.crypto", "field_missing", f"{', '.join(missing)}: not known from {spot.venue}.")
    return CryptoSection(
        price_usd=price(spot.price_usd),
        change_24h_percent=None if change is None else percent(change),
        volume_24h_usd=None if volume is None else float(round(volume)),
        quote=spot.quote,
    )


def _mood(mood: Mood) -> MoodSection:
    return MoodSection(value=mood.value, label=mood.label)


def _earthquakes(listed: QuakeList) -> QuakeSection:
    earthquakes = earthquakes_of(listed)
    if not earthquakes:
        return QuakeSection(count=0, latest=None)
    quake, magnitude = earthquakes[0]
    latest = LatestQuake(magnitude=round(magnitude, 1), location=quake.place, time=quake.time)
    return QuakeSection(count=len(earthquakes), latest=latest)


def summary(sections: FreeBriefingSections) -> str:
    """Write the sections in words, at most 400 characters, including which ones are missing."""
    written = (_written(sections, cap) for cap in CAPS)
    return next((text for text in written if len(text) <= LONGEST), None) or _cut(_written(sections, 15), LONGEST)


def _written(sections: FreeBriefingSections, cap: int) -> str:
    return " ".join(
        (
            _say_crypto(sections.crypto),
            _say_mood(sections.fear_greed),
            _say_quakes(sections.earthquakes, cap),
            _say_markets(sections.predictions, cap),
            _say_news(sections.news, cap),
            _say_services(sections.services),
        )
    )


def _say_crypto(crypto: CryptoSection | None) -> str:
    if crypto is None:
        return "Bitcoin price unavailable."
    change = crypto.change_24h_percent
    moved = "24 h change unavailable" if change is None else f"{change:+.2f} % in 24 h"
    return f"Bitcoin {f'{crypto.price_usd:,.0f}'.replace(',', ' ')} {crypto.quote} ({moved})."


def _say_mood(mood: MoodSection | None) -> str:
    return "Fear & greed unavailable." if mood is None else f"Fear & greed {mood.value} ({_cut(mood.label, 20)})."


def _say_quakes(quakes: QuakeSection | None, cap: int) -> str:
    if quakes is None:
        return "Earthquakes unavailable."
    counted = f"{quakes.count} {'earthquake' if quakes.count == 1 else 'earthquakes'} of M2.5+ in 24 h"
    latest = quakes.latest
    return f"{counted}, latest M{latest.magnitude} {_cut(latest.location, cap)}." if latest else f"{counted}."


def _say_markets(markets: list[BetItem] | None, cap: int) -> str:
    if not markets:
        return "Prediction markets unavailable."
    return f'Most traded market: "{_cut(markets[0].question, cap)}" {markets[0].yes_percent:g} % yes.'


def _say_news(stories: list[StoryItem] | None, cap: int) -> str:
    return f'Top story: "{_cut(stories[0].title, cap)}".' if stories else "Top story unavailable."


def _say_services(services: list[ServiceItem] | None) -> str:
    if services is None:
        return "Service status unavailable."
    others = [f", {s.name} {s.status.replace('_', ' ')}" for s in services if s.status != "operational"]
    return f"{len(services) - len(others)} of {len(services)} services operational{''.join(others)}."


def _cut(text: str, cap: int) -> str:
    return text if len(text) <= cap else text[: cap - 1].rstrip() + "…"
