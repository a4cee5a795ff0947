"""GDELT's articles about markets, and what they are read for: headlines where other feeds are barred or away."""

from datetime import UTC, datetime

import pytest

import tools.simulated.gdelt  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, compose
from tools.premium.sentiment import premium_sentiment
from tools.shared import headlines
from tools.sources import gdelt
from tools.sources.gdelt import ARTICLES, Article
from toolserver.upstream.source import SourceEmpty
from toolserver.world.model import World

ROW = {
    "url": "https://www.example.com/markets/1",
    "url_mobile": "",
    "title": "Nvidia , Bitcoin rally\u200b on",
    "seendate": "20261125T101500Z",
    "socialimage": "https://www.example.com/1.jpg",
    "domain": "example.com",
    "language": "English",
    "sourcecountry": "United States",
}
FEEDS = {source.name for sources in headlines.NEWS.values() for source in sources}


def test_an_article_has_title_address_publisher_and_time():
    (article,) = gdelt.parse({"articles": [ROW]}, None)
    at = datetime(2026, 11, 25, 10, 15, tzinfo=UTC)
    assert article == Article("Nvidia , Bitcoin rally on", "https://www.example.com/markets/1", at, "example.com")


def test_articles_in_other_languages_and_without_a_title_are_left_out():
    rows = [ROW, ROW | {"language": "Korean"}, ROW | {"title": "  "}]
    assert len(gdelt.parse({"articles": rows}, None)) == 1


def test_an_object_without_a_list_is_empty_and_another_form_has_changed():
    with pytest.raises(SourceEmpty):
        gdelt.parse({}, None)
    with pytest.raises(KeyError):
        gdelt.parse({"error": "x"}, None)


def test_the_form_it_may_drift_to_reads_the_same():
    assert ask(ARTICLES, form="drift") == ask(ARTICLES)
    assert len(ask(ARTICLES)) > 200


async def test_it_is_asked_only_where_fewer_than_three_feeds_answer():
    usual = await compose(premium_sentiment)
    assert ARTICLES.name not in {name for name, _ in usual.desk.asked}
    two = await compose(premium_sentiment, down=FEEDS - {"CNBC.top_news_rss", "FederalReserve.press_rss"})
    assert ARTICLES.name in {name for name, _ in two.desk.asked}
    assert two.json["trending"]
    publishers = {publisher for row in two.json["trending"] for publisher in row["sources"]}
    assert publishers <= {"cnbc", "federal_reserve", *(article.domain for article in ask(ARTICLES))}
    assert len(publishers) >= 3


async def test_alone_it_counts_as_many_feeds_as_it_has_publishers():
    alone = await compose(premium_sentiment, world=World(1, NOW), down=FEEDS)
    assert alone.json["trending"]
    assert alone.json["sample_size"]["headlines_scanned"] >= 100
