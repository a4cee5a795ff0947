"""News feeds and boards of Reddit: RSS and Atom as publishers write them."""

from datetime import UTC, datetime

import pytest

import tools.simulated.news
import tools.simulated.reddit  # noqa: F401 - they serve
from tests.tools.desk import NOW, ask
from tools.parsing.feeds import Headline
from tools.shared.headlines import NEWS
from tools.simulated.headlines import headlines
from tools.sources import news_feeds, reddit
from toolserver.upstream.source import SourceChanged, SourceDown, SourceUnusable
from toolserver.world.model import World

WORLD = World(1, NOW)
FEEDS = {name: source for name, (source, *_) in NEWS.items() if name not in ("hacker_news", "reddit", "google_news")}
FEEDS |= dict(zip(reddit.BOARDS, reddit.HOT, strict=True))
RSS = b'<?xml version="1.0"?><rss version="2.0"><channel><title>x</title>%s</channel></rss>'


def test_a_recorded_feed_gives_its_items(sample):
    found = news_feeds.parse(sample("news-rss/bbc-front-page.xml"), None)
    assert len(found) >= 10
    assert found[0].title == "Relish and dread as Starmer 'shambles' hangs over Scotland and Wales elections"
    assert found[0].url.startswith("https://www.bbc.com/news/articles/cq59xvdzjv7o")
    assert max(headline.at for headline in found) < datetime(2026, 4, 25, 19, 1, 49, tzinfo=UTC)


def test_a_recorded_press_feed_with_byte_mark_and_cdata_gives_its_item(sample):
    url = "https://www.federalreserve.gov/newsevents/pressreleases/bcreg20260716a.htm"
    at = datetime(2026, 7, 16, 18, tzinfo=UTC)
    found = news_feeds.parse(sample("federal-reserve-rss/press_all-excerpt-2026-07.xml"), None)
    assert found == (Headline("Agencies issue joint statement on sensitive information", url, at),)


def test_a_recorded_board_gives_its_posts(sample):
    found = reddit.parse(sample("reddit/listing.rss.xml"), None)
    assert found[0].title == "Rigid frame with flat bars. My kinda bike! RIP Alex Pretti"
    assert found[0].at == datetime(2026, 1, 25, 3, 7, 14, tzinfo=UTC)
    assert all(post.url.startswith("https://www.reddit.com/r/gravelcycling/comments/") for post in found)


def test_the_recorded_refusal_is_no_feed(sample):
    for parse in (reddit.parse, news_feeds.parse):
        with pytest.raises(SourceChanged):
            parse(sample("reddit/error-403-network-policy.html"), None)


@pytest.mark.parametrize("parse", [reddit.parse, news_feeds.parse])
@pytest.mark.parametrize("body", [b"", b"<html><body>x</body></html>", b"<rss><chan", b"{}", b"<rss/>"])
def test_what_is_no_feed_is_a_changed_source(parse, body):
    with pytest.raises(SourceChanged):
        parse(body, None)


def test_a_document_type_is_refused():
    with pytest.raises(SourceChanged):
        news_feeds.parse(b'<!DOCTYPE x [<!ENTITY a "b">]>' + RSS % b"", None)


def test_items_without_title_or_date_are_left_out_and_a_bad_link_is_none():
    dated = b"<pubDate>Fri, 15 Jan 2027 08:00 GMT</pubDate>"
    good = b"<item><title>A &amp;amp; B</title><link>javascript:x</link>%s</item>" % dated
    bad = b"<item><title>x</title></item><item><title>x</title><pubDate>soon</pubDate></item><item/>"
    assert news_feeds.parse(RSS % (good + bad), None) == (
        Headline("A & B", None, datetime(2027, 1, 15, 8, tzinfo=UTC)),
    )


@pytest.mark.parametrize("name", FEEDS)
@pytest.mark.parametrize("form", [None, "drift"])
def test_every_feed_gives_the_dated_items_of_the_world(name, form):
    size = reddit.POSTS if name in reddit.BOARDS else 60
    listed = [item for item in headlines(WORLD) if item.feed == name][:size]
    found = ask(FEEDS[name], world=WORLD, form=form)
    assert [(h.title, h.url, h.at.timestamp()) for h in found] == [(i.title, i.url, i.at) for i in listed if i.dated]
    assert len(found) >= FEEDS[name].least


@pytest.mark.parametrize("name", FEEDS)
def test_an_empty_feed_has_no_items(name):
    assert ask(FEEDS[name], form="empty") == ()


@pytest.mark.parametrize(("form", "word"), [("geo", "http_403"), ("limited", "http_429")])
def test_reddit_refuses(form, word):
    with pytest.raises(SourceDown) as down:
        ask(reddit.HOT[0], form=form)
    assert down.value.word == word


def test_the_search_is_off_unless_it_is_switched_on():
    with pytest.raises(SourceUnusable):
        ask(news_feeds.GOOGLE_NEWS)
    found = ask(news_feeds.GOOGLE_NEWS, keys={"GOOGLE_NEWS": "on"})
    assert found
    assert all(headline.title.endswith(" - The Daily Nasdaq") for headline in found)


def test_four_hundred_items_are_told_a_day_some_twice_some_undated():
    day = [item for item in headlines(WORLD) if item.at > NOW - 86400 and item.feed != "federal_reserve"]
    first = [item for item in day if not item.copy]
    assert len(first) == pytest.approx(400, abs=1)
    assert len(day) - len(first) == pytest.approx(40, abs=20)
    assert sum(not item.dated for item in day) == pytest.approx(20, abs=12)
