"""Market sentiment: which tickers headlines name, how words weigh, and what is said when feeds are missing."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.alternative_me
import tools.simulated.cboe
import tools.simulated.coinmarketcap
import tools.simulated.hackernews
import tools.simulated.kalshi
import tools.simulated.news
import tools.simulated.polymarket
import tools.simulated.reddit
import tools.simulated.stocks
import tools.simulated.yahoo  # noqa: F401 - they serve
from tests.tools.desk import NOW
from tests.tools.selling import sell
from tools.premium.sentiment import premium_sentiment
from tools.shared import bets, headlines
from tools.shared.headlines import Item, canonical, folded, of_the_day, without_publisher
from tools.shared.markets import VIX_SOURCES
from tools.shared.mood import FEAR_GREED_SOURCES
from tools.shared.sentiment import (
    CONTEXT,
    TICKERS,
    Mention,
    confidence,
    find_tickers,
    forms,
    label,
    samples,
    score,
    signal,
    vix_label,
)
from tools.simulated.headlines import BOARDS
from tools.simulated.headlines import headlines as told
from toolserver.errors import UpstreamUnavailable
from toolserver.registry.registry import Tier, operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

WORLD = World(1, NOW)
AT = datetime.fromtimestamp(NOW, UTC)


def names(sources):
    return {source.name for source in sources}


NEWS = names(headlines.SOURCES)
PARTS = {
    "market_indices.crypto_fear_greed": names(FEAR_GREED_SOURCES),
    "market_indices.stocks_vix": names(VIX_SOURCES),
    "trending": NEWS,
    "prediction_markets_signals": names(bets.SOURCES),
}
NOTES = {"scoring", "window", "mention_sources", "fear_greed_source", "vix_source", "labels", "limits"}
QUIET = World(1, NOW, Edits(pins={"headlines.quiet": [(0, NOW * 2, 1)]}))


def part(payload, path):
    for name in path.split("."):
        payload = payload[name]
    return payload


def codes(made):
    return {(warning.section, warning.code) for warning in made.notes.warnings}


# What the headlines say


def truth(world):
    """By ticker: scores and publishers of the day's dated headlines, each story at its first place."""
    day = [item for item in told(world) if item.dated and world.now - 86400 < item.at]
    first = {item.origin: item for item in sorted(day, key=lambda item: item.at, reverse=True)}
    scores, publishers = defaultdict(list), defaultdict(Counter)
    for item in first.values():
        for symbol in item.symbols:
            scores[symbol].append(item.score)
            publishers[symbol]["reddit" if item.feed in BOARDS else item.feed] += 1
    return len(first), scores, publishers


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_trending_is_what_the_headlines_of_the_world_name(compose, seed):
    world = World(seed, NOW)
    made = await compose(premium_sentiment, world=world, down={"HackerNewsAlgolia.stories_24h"})
    scanned, scores, publishers = truth(world)
    assert made.json["sample_size"] == {
        "headlines_scanned": scanned,
        "tickers_with_mentions": len(scores),
        "sources_ok": 12,
        "sources_failed": 1,
        "window_hours": 24,
    }
    means = {symbol: round(sum(values) / len(values), 3) for symbol, values in scores.items()}
    best = sorted(scores, key=lambda symbol: (-len(scores[symbol]), -abs(means[symbol]), symbol))[:15]
    assert [t["symbol"] for t in made.json["trending"]] == best
    for found in made.json["trending"]:
        symbol = found["symbol"]
        assert found["mention_count_24h"] == len(scores[symbol])
        assert found["sources"] == publishers[symbol]
        assert found["sentiment_score"] == pytest.approx(means[symbol], abs=0.0011)
        assert found["sentiment_label"] == label(found["sentiment_score"])
        assert found["confidence"] == confidence(len(scores[symbol]))
        assert 1 <= len(found["sample_headlines"]) <= 3


async def test_the_other_parts_are_those_of_their_sources(compose):
    made = await compose(premium_sentiment)
    assert (
        made.json["market_indices"]["crypto_fear_greed"]["value"]
        == ROUTES.expectations["fear-greed"](WORLD, {})["value"]
    )
    vix = made.json["market_indices"]["stocks_vix"]
    assert vix["label"] == vix_label(vix["value"])
    signals = made.json["prediction_markets_signals"]
    volumes = [market["volume_24h"] for market in signals]
    assert 1 <= len(signals) <= 5
    assert volumes == sorted(volumes, reverse=True)
    assert all(any(w in s["question"] for w in ("Bitcoin", "Ethereum", "Fed", "IPO")) for s in signals)
    assert any("hacker_news" in t["sources"] for t in made.json["trending"])
    assert set(made.json["notes"]) == NOTES
    assert not made.notes.warnings


async def test_the_search_is_one_more_feed_where_it_is_switched_on(compose):
    made = await compose(premium_sentiment, keys={"GOOGLE_NEWS": "on"}, down={"Cointelegraph.rss", "CoinDesk.rss"})
    assert made.json["sample_size"]["sources_ok"] == 12
    assert any("google_news" in t["sources"] for t in made.json["trending"])


# Which titles name a ticker


@pytest.mark.parametrize(
    ("title", "finance", "symbols"),
    [
        ("Bitcoin and ETH slip", False, {"BTC", "ETH"}),
        ("why bitcoin matters", False, set()),
        ("Solana network restarts", False, {"SOL"}),
        ("$NEAR $LINK $DOT $META $COIN", False, {"NEAR", "LINK", "DOT", "META", "COIN"}),
        ("NEAR Protocol ships", False, {"NEAR"}),
        ("NEAR price jumps", False, {"NEAR"}),
        ("NEAR-term market outlook", False, set()),
        ("NEAR and DOT", True, set()),
        ("COIN", False, set()),
        ("COIN stock falls", False, {"COIN"}),
        ("Apple recalls", False, set()),
        ("Apple recalls", True, {"AAPL"}),
        ("Apple shares fall", False, {"AAPL"}),
        ("Snapple recalls", True, set()),
        ("Amazon rainforest burns", False, set()),
        ("S&P 500 and Nasdaq-100 end flat", False, {"SPY", "QQQ"}),
        ("MATIC becomes POL token", False, {"POL"}),
        ("BTCUSD and XBTC and ETH2", False, set()),
        ("Binance Coin burns supply", False, {"BNB"}),
        ("Coinbase sued", False, {"COIN"}),
        ("MicroStrategy buys more", False, {"MSTR"}),
        ("A new Strategy for schools", False, set()),
        ("Metaverse and RIOT police", False, set()),
    ],
)
def test_a_ticker_is_named_by_cashtag_symbol_or_name(title, finance, symbols):
    assert set(find_tickers(title, finance=finance)) == symbols


PLAIN = ("NEAR", "LINK", "DOT", "META", "COIN", "RIOT", "SOL", "ADA", "MARA", "POL", "SPY")
WORDS = ("the", "of", "Missing", "in", "near", "link", "a", "new", "2027", "town", "Apple", "Strategy", "Amazon")


@given(st.lists(st.sampled_from(PLAIN + WORDS), max_size=12), st.sampled_from([" ", " - ", ", ", "/", "."]))
def test_english_words_are_no_tickers_without_context(words, between):
    assert find_tickers(between.join(words)) == ()


@given(st.lists(st.sampled_from(PLAIN), max_size=6))
def test_not_even_in_a_finance_feed(words):
    assert find_tickers(" ".join(words), finance=True) == ()


@given(st.sampled_from(PLAIN), st.sampled_from(CONTEXT), st.booleans())
def test_with_context_they_are(symbol, context, before):
    assert symbol in find_tickers(f"{context} of {symbol}" if before else f"{symbol} {context}")


@given(st.sampled_from([t.symbol for t in TICKERS]), st.text("abcXYZ ", max_size=8), st.text(" .,!?", max_size=3))
def test_a_cashtag_always_names(symbol, before, after):
    assert symbol in find_tickers(f"{before} ${symbol}{after}")


@given(st.text(max_size=80))
def test_any_text_can_be_looked_at(text):
    assert set(find_tickers(text)) <= {ticker.symbol for ticker in TICKERS}
    assert -1 <= score(text) <= 1


# How words weigh


@pytest.mark.parametrize(
    ("title", "value"),
    [
        ("Bitcoin surges", 1),
        ("Bitcoin dropped, then rallied", 0),
        ("Shares plunging on losses and bankruptcies", -1),
        ("Stock fell, slid and sank", -1),
        ("Stock rose and won", 1),
        ("No gains this week", -1),
        ("Company denies fraud", 1),
        ("Never in the whole gain", 1),
        ("Regulator ends the probe", 1),
        ("A sell-off after record-high", 0),
        ("You won't believe it", 0),
        ("Price-drop ahead", -1),
        ("Gains, losses and more fears", -1 / 3),
        ("Grain harvest", 0),
        ("", 0),
    ],
)
def test_a_title_is_scored_by_its_words(title, value):
    assert score(title) == pytest.approx(value)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("drop", {"drop", "drops", "dropped", "dropping"}),
        ("surge", {"surge", "surges", "surged", "surging"}),
        ("rally", {"rally", "rallies", "rallied", "rallying"}),
        ("crash", {"crash", "crashes", "crashed", "crashing"}),
        ("beat", {"beat", "beats", "beated", "beating"}),
        ("recover", {"recover", "recovers", "recovered", "recovering"}),
        ("ban", {"ban", "bans", "banned", "banning"}),
    ],
)
def test_words_have_their_english_endings(word, expected):
    assert forms(word) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.301, "positive"),
        (0.3, "moderately_positive"),
        (0.101, "moderately_positive"),
        (0.1, "neutral"),
        (-0.1, "neutral"),
        (-0.101, "moderately_negative"),
        (-0.3, "moderately_negative"),
        (-0.301, "negative"),
    ],
)
def test_labels_have_their_limits(value, expected):
    assert label(value) == expected


def test_signals_confidence_and_volatility_have_theirs():
    assert [signal(v) for v in (0.11, 0.1, -0.1, -0.11)] == ["+", "neutral", "neutral", "-"]
    assert [confidence(n) for n in (2, 3, 9, 10)] == ["low", "medium", "medium", "high"]
    assert [vix_label(v) for v in (14.99, 15, 25, 40)] == ["low_volatility", "normal", "elevated", "high_volatility"]


# Each story once


def item(publisher="cnbc", title="Bitcoin up", url=None, hours=1.0):
    return Item(publisher, title, without_publisher(title), url, AT - timedelta(hours=hours))


def test_a_story_counts_once_where_it_stood_first():
    one = item(url="https://www.a.example/x?utm_source=rss&id=1#top", hours=3)
    same_address = item("decrypt", "Other words", "http://a.example/x?id=1", hours=2)
    same_title = item("bbc", "BITCOIN - up - Reuters", "https://b.example/", hours=1)
    other = item("bbc", "Bitcoin down", "https://b.example/2", hours=4)
    assert of_the_day([same_title, same_address, one, other], AT) == [other, one]


def test_the_window_is_a_day_and_what_is_ahead_is_out():
    items = [item(title=f"t{hours}", hours=hours) for hours in (24, 23.99, 0, -0.01)]
    assert [kept.title for kept in of_the_day(items, AT)] == ["t23.99", "t0"]


def test_items_without_letters_or_address_are_not_the_same():
    assert len(of_the_day([item(title="!!!"), item(title="???")], AT)) == 2
    assert (folded("!!!"), canonical(None)) == ("", "")


def test_samples_are_the_clearest_and_of_different_publishers():
    mentions = [
        Mention(item(p, f"{p} {v}", hours=h), v) for p, v, h in [("a", 1, 1), ("a", -1, 2), ("b", 0.5, 1), ("c", 0, 1)]
    ]
    assert [m.item.publisher for m in samples(mentions)] == ["a", "b", "c"]
    assert [(m.item.publisher, m.score) for m in samples(mentions[:3])] == [("a", 1), ("a", -1), ("b", 0.5)]


# What is missing


@pytest.mark.parametrize("lost", PARTS)
async def test_a_part_whose_sources_are_down_is_null_and_the_others_stay(compose, lost):
    whole = await compose(premium_sentiment)
    made = await compose(premium_sentiment, down=PARTS[lost])
    for path in PARTS:
        assert part(made.json, path) == (None if path == lost else part(whole.json, path))
    assert codes(made) == {(lost, "section_unavailable")}


@pytest.mark.parametrize("left", PARTS)
async def test_one_part_is_enough(compose, left):
    down = set().union(*(sources for path, sources in PARTS.items() if path != left))
    made = await compose(premium_sentiment, down=down)
    assert {path for path in PARTS if part(made.json, path) is not None} == {left}


@pytest.mark.parametrize("lost", sorted(NEWS - {"GoogleNews.search_rss", "GDELT.articles"}))
async def test_without_one_feed_the_others_tell(compose, lost):
    made = await compose(premium_sentiment, down={lost})
    assert made.json["trending"]
    assert (made.json["sample_size"]["sources_ok"], made.json["sample_size"]["sources_failed"]) == (12, 1)
    assert codes(made) == {("trending", "partial")}
    assert [n.source.name for n in made.notes.sources if n.status == "error"] == [lost]


@pytest.mark.parametrize(
    ("left", "many"),
    [
        ({"HackerNewsAlgolia.stories_24h", "Decrypt.rss"}, True),
        ({"CoinDesk.rss", "Decrypt.rss", "FederalReserve.press_rss"}, False),
    ],
)
async def test_two_feeds_or_less_than_a_hundred_headlines_are_no_trend(compose, left, many):
    made = await compose(premium_sentiment, down=NEWS - left)
    assert (made.json["sample_size"]["headlines_scanned"] >= 100) is many
    assert made.json["sample_size"]["sources_ok"] == len(left)
    assert made.json["trending"] is None
    assert codes(made) == {("trending", "partial"), ("trending", "insufficient_sample")}


async def test_nobody_answers(compose):
    with pytest.raises(SourceError):
        await compose(premium_sentiment, down={"*"})
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_sentiment, down={"*"})
    all_but_one = set().union(*PARTS.values()) - {"CoinDesk.rss"}
    with pytest.raises(UpstreamUnavailable):
        await sell(premium_sentiment, down=all_but_one)


# What it costs


@pytest.mark.parametrize(
    ("world", "down", "price"),
    [
        (WORLD, set(), 2),
        (QUIET, set(), 2),
        (QUIET, {"HackerNewsAlgolia.stories_24h"} | names(FEAR_GREED_SOURCES), 2),
        (QUIET, {"HackerNewsAlgolia.stories_24h"} | names(FEAR_GREED_SOURCES) | names(VIX_SOURCES), 0),
        (WORLD, NEWS | names(FEAR_GREED_SOURCES) | names(VIX_SOURCES), 0),
    ],
)
async def test_no_ticker_and_no_index_costs_nothing(world, down, price):
    sale = await sell(premium_sentiment, world=world, down=down)
    assert (sale.paid, sale.outcome.no_charge) == (price, None if price else "empty_result")


def test_the_operation_is_as_documented():
    operation = operation_of(premium_sentiment)
    assert (operation.path, operation.tier, operation.credits) == ("/api/pro/sentiment", Tier.PREMIUM, 2)
    assert (operation.longest_ttl, operation.sla_s) == (300, 900)
    assert names(operation.sources) == set().union(*PARTS.values())
