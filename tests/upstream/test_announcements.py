"""What upstreams announce is kept by source, and logged when it is news and then once a day."""

import logging
from datetime import UTC, datetime

import pytest

from tests.tools.premium.store import store
from toolserver.clock import ManualClock
from toolserver.upstream.announcements import LONGEST, Announcement, Announcements

URL = "https://gamma-api.example/markets"
SUNSET = "Fri, 01 May 2026 00:00:00 GMT"


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 15, tzinfo=UTC))


@pytest.mark.parametrize(
    ("status", "headers", "found"),
    [
        (200, {"sunset": SUNSET}, [("sunset", SUNSET)]),
        (200, {"deprecation": "true", "sunset": SUNSET}, [("deprecation", "true"), ("sunset", SUNSET)]),
        (200, {"warning": '299 - "use /markets/keyset"'}, [("warning", '299 - "use /markets/keyset"')]),
        (200, {"warning": '110 - "stale"'}, []),
        (308, {"location": "https://www.other.example/x"}, [("moved", "to www.other.example")]),
        (301, {"location": "/markets/2"}, []),
        (302, {"location": "https://www.other.example/x"}, []),
        (200, {"content-type": "application/json"}, []),
    ],
)
def test_headers_and_permanent_moves_are_kept(clock, status, headers, found):
    announcements = Announcements(clock)
    announcements.record("A.x", URL, status, headers)
    assert [(each.kind, each.text) for each in announcements.list_all()] == found


def test_each_is_logged_when_it_is_news_and_once_a_day(clock, caplog):
    announcements = Announcements(clock)
    with caplog.at_level(logging.WARNING):
        for hours in (0, 1, 22):
            clock.advance(3600 * hours)
            announcements.record("A.x", URL, 200, {"sunset": SUNSET})
        assert len(caplog.records) == 1
        clock.advance(3600)
        announcements.record("A.x", URL, 200, {"sunset": SUNSET})
        assert len(caplog.records) == 2
        announcements.record("A.x", URL, 200, {"sunset": "another"})
    assert [record.said for record in caplog.records] == [SUNSET, SUNSET, "another"]


def test_what_is_kept_is_short_and_printable(clock):
    announcements = Announcements(clock)
    announcements.record("A.x", URL, 200, {"deprecation": "\x1b[31m" + "x" * 1000})
    (kept,) = announcements.list_all()
    assert len(kept.text) == LONGEST
    assert kept.text.isprintable()


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        ({"sunset": SUNSET}, "sunset", SUNSET),
        ({"warning": '299 - "old"'}, "warning", "299 - "),
        ({"moved": "www.stripestatus.com"}, "moved", "to www.stripestatus.com"),
    ],
)
async def test_what_the_world_announces_is_in_the_metrics_and_the_list_within_one_read(tmp_path, rule, kind, said):
    async with store(tmp_path) as shop:
        shop.upstreams.fault("AlternativeMe.fear_greed", "announce", **rule)
        answer = await shop.client.get("/api/fear-greed")
        listed = shop.service.fetcher.announcements.list_all()
        metrics = shop.service.metrics.text().decode()

    assert answer.status_code == 200
    assert (answer.json()["data"] is None) is (kind == "moved")
    assert [(each.source, each.kind) for each in listed] == [("AlternativeMe.fear_greed", kind)]
    assert said in listed[0].text
    assert f'toolserver_source_announcement{{kind="{kind}"' in metrics
    assert 'source="AlternativeMe.fear_greed"} 1.0' in metrics


def test_an_announcement_says_when_it_was_last_seen_and_they_are_listed_by_source(clock):
    announcements = Announcements(clock)
    announcements.record("B.x", URL, 308, {"location": "https://www.other.example/x"})
    for _ in range(2):
        announcements.record("A.x", URL, 200, {"sunset": SUNSET, "warning": ' 299 - "old"'})
        clock.advance(60)
    at = clock.time()
    assert announcements.list_all() == [
        Announcement("A.x", "sunset", SUNSET, at - 60),
        Announcement("A.x", "warning", ' 299 - "old"', at - 60),
        Announcement("B.x", "moved", "to www.other.example", at - 120),
    ]
    assert LONGEST == 200
