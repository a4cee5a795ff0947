"""Define the parts of the agent context: the state of the world at one instant, written for a model."""

import datetime as dt
from typing import Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tools.parsing.spaceflight import Precision
from tools.shared.markets import Freshness
from tools.shared.mood import IndexName
from toolserver import Payload, Timestamp

Word = TypeAliasType(
    "Word", Literal["operational", "minor issues", "major issues", "critical", "maintenance", "unknown"]
)
"""The state of a service."""


class ContextMoment(Payload):
    iso: Timestamp = Field(description="Now, UTC")
    unix_ms: int = Field(description="Now, Unix milliseconds")
    human_readable_utc: str = Field(description="Now in words, UTC")
    weekday: str = Field(description="Day of the week, UTC")


class BtcNow(Payload):
    price_usd: float = Field(gt=0, description="Last price, in the currency of `quote`")
    change_24h_percent: float | None = Field(
        description="Change of the price in about 24 hours, percent; null: the venue does not give it"
    )
    volume_24h: float | None = Field(
        description="Traded in 24 hours, in the currency of `quote`; null: the venue does not give it"
    )
    quote: Literal["USD", "USDT"] = Field(description="Currency of the numbers; USDT is not converted")
    as_of: Timestamp = Field(description="When the price was fetched")


class MoodNow(Payload):
    value: int = Field(ge=0, le=100, description="0 extreme fear, 100 extreme greed")
    label: str = Field(description="The publisher's word for the value")
    source: IndexName = Field(description="Publisher of the index; two publishers' values are not comparable")
    as_of: Timestamp = Field(description="When the publisher set the value")


class VixNow(Payload):
    value: float = Field(gt=0, description="The VIX, points")
    change_percent: float | None = Field(description="Change against the previous close, percent; null: not given")
    source: str = Field(description="provider:symbol")
    freshness: Freshness = Field(
        description="Whether it is current, delayed or the last close, as far as the provider says"
    )
    as_of: Timestamp | None = Field(description="Time of the value; null: the provider does not give it")


class FedRateNow(Payload):
    value: float = Field(description="Effective rate, percent")
    as_of: dt.date = Field(description="The day that the rate is for")
    target_from: float | None = Field(
        description="Lower end of the Fed's target range, percent; null: not from the New York Fed"
    )
    target_to: float | None = Field(
        description="Upper end of the Fed's target range, percent; null: not from the New York Fed"
    )


class ForexNow(Payload):
    EUR: float | None = Field(description="Euros per dollar; null: not published")
    JPY: float | None = Field(description="Yen per dollar; null: not published")
    GBP: float | None = Field(description="Pounds sterling per dollar; null: not published")
    CHF: float | None = Field(description="Swiss francs per dollar; null: not published")
    date: dt.date = Field(description="Newest published day")
    kind: Literal["ecb_reference", "market_mid"] = Field(
        description="ecb_reference: the ECB's daily fixing; market_mid: mid-market"
    )


class ContextMarkets(Payload):
    btc: BtcNow | None = Field(description="Bitcoin; null: no source answered")
    crypto_fear_greed: MoodNow | None = Field(description="Mood of the crypto market; null: no source answered")
    vix: VixNow | None = Field(description="Expected volatility of U.S. shares; null: no source answered")
    fed_funds_rate: FedRateNow | None = Field(description="U.S. federal funds rate; null: no source answered")
    forex_usd_base: ForexNow | None = Field(description="Dollar rates; null: no source answered")


class QuakeNews(Payload):
    magnitude: float = Field(description="Magnitude on the network's preferred scale")
    place: str = Field(description="Place, as the network names it")
    time: Timestamp = Field(description="Origin time")
    url: str | None = Field(description="The network's page of the event; null: none")


class LaunchNews(Payload):
    mission: str = Field(description="Name of the mission, or of the launch")
    vehicle: str | None = Field(description="Rocket; null: not given")
    provider: str | None = Field(description="Company or agency that launches; null: not given")
    net: Timestamp | None = Field(description="No earlier than, UTC; null: no exact time from the fallback")
    time_precision: Precision = Field(description="How much of `net` is known; unknown: it may mean little")
    status: str = Field(description="State in the list's words")


class StoryNews(Payload):
    title: str = Field(description="Title of the story")
    points: int = Field(description="Points on Hacker News")
    comments: int = Field(description="Comments on Hacker News")
    url: str = Field(description="The article, or the discussion for text posts")


class MarketNews(Payload):
    question: str = Field(description="The question, in the market's words")
    yes_probability: float = Field(
        ge=0, le=1, description="Price of yes as a probability, 0-1; of Kalshi the last trade"
    )
    volume_24h: float = Field(ge=0, description="Traded in 24 hours, USD; of Kalshi contracts times the last price")
    url: str | None = Field(description="Page of the market; null: none")


class WorldEvents(Payload):
    """Null: no source answered. Empty: the source answered with none."""

    significant_earthquakes_24h: list[QuakeNews] | None = Field(
        max_length=3, description="M6+ or flagged significant by USGS, largest first; null: no source answered"
    )
    upcoming_space_launches: list[LaunchNews] | None = Field(
        max_length=3, description="Soonest first; null: no source answered"
    )
    news_front_page_top5: list[StoryNews] | None = Field(
        max_length=5, description="Front page of Hacker News, from the top; null: no source answered"
    )
    prediction_markets_top3: list[MarketNews] | None = Field(
        max_length=3, description="Most traded in 24 hours; null: no source answered"
    )


class ServiceDetails(Payload):
    GitHub: Word = Field(description="What its status page reports, in our word")
    Cloudflare: Word = Field(description="What its status page reports, in our word")
    OpenAI: Word = Field(description="What its status page reports, ChatGPT included, in our word")
    Anthropic: Word = Field(description="What its status page reports, in our word")


class Infrastructure(Payload):
    summary: str = Field(description="The four services in one sentence")
    details: ServiceDetails = Field(description="The four services")
    all_operational: bool = Field(description="False when the state of one is unknown")


class AgentWorld(Payload):
    datetime: ContextMoment = Field(description="The moment this is about")
    markets: ContextMarkets = Field(description="Markets and rates")
    world_events: WorldEvents = Field(description="Earthquakes, launches, news and bets")
    infrastructure: Infrastructure = Field(description="GitHub, Cloudflare, OpenAI and Anthropic")
