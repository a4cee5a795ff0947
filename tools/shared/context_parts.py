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
    iso: Timestamp
    unix_ms: int
    human_readable_utc: str
    weekday: str


class BtcNow(Payload):
    price_usd: float = Field(gt=0)
    change_24h_percent: float | None
    volume_24h: float | None = Field(description="USD")
    quote: Literal["USD", "USDT"] = Field(description="USDT is not converted")
    as_of: Timestamp


class MoodNow(Payload):
    value: int = Field(ge=0, le=100)
    label: str
    source: IndexName
    as_of: Timestamp


class VixNow(Payload):
    value: float = Field(gt=0)
    change_percent: float | None
    source: str
    freshness: Freshness
    as_of: Timestamp | None


class FedRateNow(Payload):
    value: float = Field(description="Effective rate, percent")
    as_of: dt.date
    target_from: float | None
    target_to: float | None


class ForexNow(Payload):
    EUR: float | None
    JPY: float | None
    GBP: float | None
    CHF: float | None
    date: dt.date
    kind: Literal["ecb_reference", "market_mid"]


class ContextMarkets(Payload):
    btc: BtcNow | None
    crypto_fear_greed: MoodNow | None
    vix: VixNow | None
    fed_funds_rate: FedRateNow | None
    forex_usd_base: ForexNow | None


class QuakeNews(Payload):
    magnitude: float
    place: str
    time: Timestamp
    url: str | None


class LaunchNews(Payload):
    mission: str
    vehicle: str | None
    provider: str | None
    net: Timestamp | None = Field(description="No earlier than")
    time_precision: Precision
    status: str


class StoryNews(Payload):
    title: str
    points: int
    comments: int
    url: str


class MarketNews(Payload):
    question: str
    yes_probability: float = Field(ge=0, le=1)
    volume_24h: float = Field(ge=0, description="USD")
    url: str | None


class WorldEvents(Payload):
    """Null: no source answered. Empty: the source answered with none."""

    significant_earthquakes_24h: list[QuakeNews] | None = Field(
        max_length=3, description="M6+ or flagged significant by USGS, largest first"
    )
    upcoming_space_launches: list[LaunchNews] | None = Field(max_length=3, description="Soonest first")
    news_front_page_top5: list[StoryNews] | None = Field(max_length=5, description="Hacker News")
    prediction_markets_top3: list[MarketNews] | None = Field(max_length=3, description="Most traded")


class ServiceDetails(Payload):
    GitHub: Word
    Cloudflare: Word
    OpenAI: Word
    Anthropic: Word


class Infrastructure(Payload):
    summary: str
    details: ServiceDetails
    all_operational: bool = Field(description="False when the state of one is unknown")


class AgentWorld(Payload):
    datetime: ContextMoment
    markets: ContextMarkets
    world_events: WorldEvents
    infrastructure: Infrastructure
