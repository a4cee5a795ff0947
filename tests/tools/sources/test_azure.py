"""Azure's status feed, and how XML is read at all."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.azure  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.parsing.xml import xml_root
from tools.shared.status import from_azure
from tools.simulated.incidents import incidents
from tools.sources.azure import AZURE_STATUS, newest, parse
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

BUILT = "<lastBuildDate>Fri, 31 Jul 2026 00:12:00 Z</lastBuildDate>"
DATED = "<item><title>Storage &amp;amp; more</title><pubDate>Thu, 30 Jul 2026 23:00:00 GMT</pubDate></item>"
UNDATED = "<item><title>Networking</title><pubDate>lately</pubDate></item>"


def rss(inside):
    return f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{inside}</channel></rss>'.encode()


def test_a_recorded_feed_without_items_is_operational(sample):
    feed = parse(sample("azure-status/feed-empty-2026-07.xml"), None)
    assert feed.built_at == datetime(2026, 7, 31, 0, 12, tzinfo=UTC)
    assert feed.items == ()
    assert from_azure(feed).status == "operational"


def test_an_item_is_a_degradation_with_its_title_dated_or_not():
    feed = parse(rss(BUILT + UNDATED + DATED), None)
    assert [i.title for i in feed.items] == ["Networking", "Storage & more"]
    assert feed.items[0].published_at is None
    assert newest(feed) == datetime(2026, 7, 30, 23, 0, tzinfo=UTC)
    assert from_azure(feed) == ("degraded", "Networking")


@given(st.lists(st.from_regex(r"[A-Za-z0-9]{1,20}", fullmatch=True)))
def test_no_item_is_invented_or_dropped(titles):
    feed = parse(rss(BUILT + "".join(f"<item><title>{t}</title></item>" for t in titles)), None)
    assert [i.title for i in feed.items] == titles


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Checking your browser</body></html>",
        b"<!DOCTYPE html><html></html>",
        rss(""),
        rss(BUILT)[:-9],
        rss(BUILT + "<item><title> </title></item>"),
        b"<feed/>",
        b'{"error": "no"}',
    ],
)
def test_anything_but_a_built_feed_is_refused(body):
    with pytest.raises(SourceChanged):
        parse(body, None)


@pytest.mark.parametrize(
    "body",
    [
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b"<a>&x;</a>",
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="nobody-knows"?><a/>',
    ],
)
def test_document_types_and_entities_are_refused_in_any_encoding(body):
    with pytest.raises(SourceChanged):
        xml_root(body)


def test_the_declared_encoding_is_used():
    assert xml_root(b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>').text == "é"
    assert xml_root("\ufeff<a>é</a>".encode()).text == "é"


def test_the_twin_tells_its_incident_while_it_lasts():
    world = World(1, NOW)
    happened = incidents(world, "Azure", NOW - 2 * 86400)[0]

    feed = ask(AZURE_STATUS, world=world.at(happened.began + 60))
    assert [i.title for i in feed.items] == [f"Azure Front Door – {happened.title}"]
    assert newest(feed) == datetime.fromtimestamp(happened.began, UTC)
    assert ask(AZURE_STATUS, world=world.at(happened.ended)).items == ()


def test_a_feed_that_was_never_built_is_refused():
    with pytest.raises(SourceChanged):
        ask(AZURE_STATUS, form="error200")
