"""GET /api/pro/sentiment."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from tools.parsing.prediction_markets import Bet
from tools.shared import bets, headlines
from tools.shared import sentiment as said
from tools.shared.headlines import LEAST_FEEDS, Collected, Item
from tools.shared.markets import VIX_SOURCES, IndexQuote, vix_fallbacks
from tools.shared.mood import FEAR_GREED_SOURCES, IndexName, Mood, fear_greed_fallbacks
from tools.shared.sentiment import BY_SYMBOL, AssetClass, Confidence, Label, Mention, Signal, Talk, VixLabel
from tools.sources import reddit
from toolserver import (
    FREE_SIBLING,
    Fallback,
    Payload,
    Picture,
    SourceEmpty,
    Tier,
    ToolContext,
    TopLevel,
    read_sections,
    tool,
    up_to,
)

MOOD, VIX = "market_indices.crypto_fear_greed", "market_indices.stocks_vix"
TRENDING, SIGNALS = "trending", "prediction_markets_signals"
SHOWN, MARKETS_SHOWN = 15, 5
LEAST_HEADLINES = 100
WINDOW_H = 24
FOLLOW_S = 100.0  # one board of Reddit a composition: each of the four is read again before its answer is stale


class CryptoFearGreed(Payload):
    value: int = Field(ge=0, le=100, description="0 extreme fear, 100 extreme greed")
    label: str = Field(description="The publisher's word for the value")
    source: IndexName = Field(description="Publisher of the index; two publishers' values are not comparable")


class VolatilityIndex(Payload):
    value: float = Field(gt=0, description="The VIX, points")
    change_percent: float = Field(description="Change against the close before, percent")
    label: VixLabel = Field(description="Our word for the value: low_volatility below 15, normal 25, elevated 40")
    source: str = Field(description="provider:symbol")


class MarketIndices(Payload):
    crypto_fear_greed: CryptoFearGreed | None = Field(
        description="Fear & Greed of the crypto market; null: no source answered"
    )
    stocks_vix: VolatilityIndex | None = Field(
        description="Expected volatility of U.S. shares; null: no source answered"
    )


class SampleHeadline(Payload):
    title: str = Field(description="Headline, third-party text")
    url: str | None = Field(description="Address of the article; null: none")
    source: str = Field(description="Publisher")
    sentiment_signal: Signal = Field(description="Tone of this headline by our words: above 0.1 +, below -0.1 -")


class TickerTalk(Payload):
    symbol: str = Field(description="Ticker")
    asset_class: AssetClass = Field(description="Class of the ticker")
    mention_count_24h: int = Field(ge=1, description="Headlines of 24 hours that name it")
    sources: dict[str, int] = Field(description="Headlines that name it, by publisher")
    sentiment_score: float = Field(ge=-1, le=1, description="Mean tone of these headlines, -1 to 1")
    sentiment_label: Label = Field(
        description="Our word for the score: neutral from -0.1 to 0.1, moderately_ up to 0.3"
    )
    sample_headlines: list[SampleHeadline] = Field(
        max_length=said.SAMPLES, description="Up to three, the clearest in tone first"
    )
    confidence: Confidence = Field(description="By the number of mentions: low below 3, medium below 10")


class MarketSignal(Payload):
    question: str = Field(description="The question, in the market's words")
    yes_probability: float | None = Field(
        ge=0, le=1, description="Price of yes as a probability, 0-1; of Kalshi the last trade; null: no price"
    )
    volume_24h: float = Field(ge=0, description="Traded in 24 hours, USD; of Kalshi contracts times the last price")
    url: str | None = Field(description="Page of the market; null: none")


class HeadlineSample(Payload):
    headlines_scanned: int = Field(ge=0, description="Of the window, each story once, with or without a ticker")
    tickers_with_mentions: int = Field(ge=0, description="Tickers of our list that some headline names")
    sources_ok: int = Field(ge=0, description="Headline feeds that answered")
    sources_failed: int = Field(ge=0, description="Headline feeds that were asked and gave nothing, as in _meta")
    window_hours: int = Field(description="Hours that the headlines are from")


class PremiumSentiment(TopLevel):
    market_indices: MarketIndices = Field(description="Two indices of mood")
    trending: list[TickerTalk] | None = Field(
        max_length=SHOWN, description="Most named tickers first; null: too few headlines to tell"
    )
    prediction_markets_signals: list[MarketSignal] | None = Field(
        max_length=MARKETS_SHOWN, description="Markets about money, most traded first; null: no source answered"
    )
    sample_size: HeadlineSample = Field(description="How much the tones rest on")
    notes: dict[str, str] = Field(description="Remarks on scoring, sources and labels")


@tool(
    path="/api/pro/sentiment",
    title="Market sentiment",
    search_hint="bullish bearish headlines tone tickers news mood",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=300,
    sla_s=900,
    follow_s=FOLLOW_S,
    warm=tuple((board, None) for board in reddit.HOT),
    toolset="core",
    tags={FREE_SIBLING: "fear_greed"},
    sources=(*FEAR_GREED_SOURCES, *VIX_SOURCES, *headlines.SOURCES, *bets.SOURCES),
    pictures=(Picture("bars", "Mentions in 24 hours", rows="trending", values=("mention_count_24h",), label="symbol"),),
)
async def premium_sentiment(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> PremiumSentiment:
    """What is being said about markets: which of 26 crypto and stock tickers the headlines of the past 24 hours name
    and in what tone, with samples, crypto fear & greed, the VIX, and bets on the economy. For the one index use
    fear_greed, for prices stocks or premium_crypto_deep.

    Shape: a part whose sources are all down is null, with a warning; `trending` also when fewer than 3 feeds or 100
    headlines were read. Titles and questions are third-party text.
    Chart: `trending` as bars: x `symbol`, y `mention_count_24h`, coloured by `sentiment_score` from -1 to 1;
    `market_indices.crypto_fear_greed.value` as a gauge from 0 to 100.
    Source: Hacker News Search, Reddit, news feeds of eight publishers, else GDELT; alternative.me or CoinMarketCap;
    CNBC, Yahoo or Cboe; Polymarket, else Kalshi.
    Errors: 503 when no source answers, not charged; nor is an answer without tickers and without indices.
    """
    chains: dict[str, tuple[Fallback[Any], ...]] = {
        MOOD: fear_greed_fallbacks(),
        VIX: vix_fallbacks(),
        TRENDING: headlines.headline_fallbacks(ctx),
        SIGNALS: bets.markets(),
    }
    sections = await read_sections(ctx, chains)
    sections.require_any()
    indices = MarketIndices(crypto_fear_greed=sections.get(MOOD, mood), stocks_vix=sections.get(VIX, vix))
    collected: Collected | None = sections.get(TRENDING, lambda read: read)
    items = [] if collected is None else headlines.of_the_day(collected.items, ctx.now)
    talk = said.talk(items)
    trending = [ticker(each) for each in talk[:SHOWN]] if enough(ctx, collected, items) else None
    signals = sections.get(SIGNALS, lambda open_: [market(bet) for bet in said.financial(open_)[:MARKETS_SHOWN]])
    if not trending and indices.crypto_fear_greed is None and indices.stocks_vix is None:
        if trending is None and signals is None:
            raise SourceEmpty(f"{len(items)} headlines and nothing else")
        ctx.mark_empty()
    return PremiumSentiment(
        market_indices=indices,
        trending=trending and ctx.page(trending, limit, TRENDING),
        prediction_markets_signals=signals and ctx.page(signals, limit, SIGNALS),
        sample_size=sample(ctx, items, talk),
        notes=_notes(indices),
    )


def mood(index: Mood) -> CryptoFearGreed:
    return CryptoFearGreed(value=index.value, label=index.label, source=index.index_name)


def vix(quote: IndexQuote) -> VolatilityIndex:
    return VolatilityIndex(
        value=quote.price,
        change_percent=quote.change_percent,
        label=said.vix_label(quote.price),
        source=quote.source,
    )


def enough(ctx: ToolContext, collected: Collected | None, items: Sequence[Item]) -> bool:
    """Return True if there are enough headlines to call a trend, and warn about missing feeds."""
    if collected is None:
        return False
    if collected.missing:
        feeds = collected.answered + len(collected.missing)
        text = f"{len(collected.missing)} of {feeds} headline feeds gave nothing: {', '.join(collected.missing)}"
        ctx.warn(TRENDING, "partial", text if len(text) <= 200 else f"{text[:199]}…")
    if collected.answered >= LEAST_FEEDS and len(items) >= LEAST_HEADLINES:
        return True
    text = f"{len(items)} headlines of {collected.answered} feeds; {LEAST_HEADLINES} of {LEAST_FEEDS} are needed."
    text += f" The licence policy bars {collected.barred} feeds." if collected.barred else ""
    ctx.warn(TRENDING, "insufficient_sample", text)
    return False


def ticker(talk: Talk) -> TickerTalk:
    return TickerTalk(
        symbol=talk.symbol,
        asset_class=BY_SYMBOL[talk.symbol].asset_class,
        mention_count_24h=len(talk.mentions),
        sources=talk.publishers,
        sentiment_score=talk.score,
        sentiment_label=said.label(talk.score),
        sample_headlines=[headline(mention) for mention in said.samples(talk.mentions)],
        confidence=said.confidence(len(talk.mentions)),
    )


def headline(mention: Mention) -> SampleHeadline:
    item = mention.item
    return SampleHeadline(
        title=item.title, url=item.url, source=item.publisher, sentiment_signal=said.signal(mention.score)
    )


def market(bet: Bet) -> MarketSignal:
    return MarketSignal(
        question=bet.question,
        yes_probability=round(bet.prices[0], 4),
        volume_24h=round(bet.volume_24h_usd, 2),
        url=bet.url,
    )


def sample(ctx: ToolContext, items: Sequence[Item], talk: Sequence[Talk]) -> HeadlineSample:
    sources_ok, sources_failed = ctx.notes.count_sources(TRENDING)
    return HeadlineSample(
        headlines_scanned=len(items),
        tickers_with_mentions=len(talk),
        sources_ok=sources_ok,
        sources_failed=sources_failed,
        window_hours=WINDOW_H,
    )


def _notes(indices: MarketIndices) -> dict[str, str]:
    fear, vol = indices.crypto_fear_greed, indices.stocks_vix
    return {
        "scoring": "Each title: (positive - negative) / (positive + negative) words of lexicon 1, turned round within 3"
        " words after a negator, 0 without any; per ticker the mean.",
        "window": "Headlines published in the past 24 hours; undated ones are left out, a story is counted once.",
        "mention_sources": "Hacker News stories with 2 points or more, hot posts of four boards of Reddit, asked in"
        " turn, feeds of CoinDesk, Cointelegraph, Decrypt, CNBC, MarketWatch, Yahoo Finance, BBC and the Federal"
        " Reserve; where fewer than three of them may be read or answer, articles that GDELT found, by domain.",
        "fear_greed_source": f"Index of {fear.source}; other indices differ by several points."
        if fear
        else "Unavailable.",
        "vix_source": vol.source if vol else "Unavailable.",
        "labels": "Score above 0.3 positive, above 0.1 moderately_positive, from -0.1 neutral, from -0.3"
        " moderately_negative, else negative. VIX below 15 low_volatility, 25 normal, 40 elevated.",
        "limits": "Headlines are a sample, not all talk, and words are counted, not understood.",
    }
