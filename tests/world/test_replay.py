"""Recorded bodies: served again, with their times moved."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.toy import T
from toolserver.world.replay import read_recorded, shifted
from toolserver.world.request_checks import ControlRefused

ISO = "2026-07-01T12:00:00Z"
AT = datetime.fromisoformat(ISO).timestamp()


def moved(value: object) -> object:
    return json.loads(shifted(json.dumps(value).encode(), T))


def test_the_newest_item_becomes_a_minute_old_and_the_distances_stay():
    rows = {"items": [{"time": int(AT * 1000), "v": 1}, {"time": int((AT - 300) * 1000), "v": 1_900_000_000}]}
    assert moved(rows) == {
        "items": [{"time": int((T - 60) * 1000), "v": 1}, {"time": int((T - 360) * 1000), "v": 1_900_000_000}]
    }


def test_every_notation_is_kept():
    given_ = {
        "updated": ISO,
        "issued": "2026-07-01T05:00:00-07:00",
        "sent": "2026-07-01 12:00:00.500",
        "created_at": int(AT),
        "timestamp": str(int(AT)),
        "date": "2026-06-30",
        "pubDate": "Wed, 01 Jul 2026 12:00:00 GMT",
        "note": "2026 was a year",
    }
    assert moved(given_) == {
        "updated": "2027-01-15T07:59:00Z",
        "issued": "2027-01-15T00:59:00-07:00",
        "sent": "2027-01-15 07:59:00.500",
        "created_at": int(T - 60),
        "timestamp": str(int(T - 60)),
        "date": "2027-01-13",
        "pubDate": "Fri, 15 Jan 2027 07:59:00 GMT",
        "note": "2026 was a year",
    }


def test_what_lies_ahead_by_its_name_is_not_the_newest_item():
    given_ = {"sent": ISO, "expires": "2026-07-02T12:00:00Z", "nextFundingTime": int((AT + 3600) * 1000)}
    assert moved(given_) == {
        "sent": "2027-01-15T07:59:00Z",
        "expires": "2027-01-16T07:59:00Z",
        "nextFundingTime": int((T - 60 + 3600) * 1000),
    }


def test_rows_without_names_start_with_their_time():
    assert moved([[int(AT), 1.5, 2], [int(AT) - 60, 1.4, 1_700_000_000]]) == [
        [int(T - 60), 1.5, 2],
        [int(T - 120), 1.4, 1_700_000_000],
    ]


def test_templates_are_expanded_at_now():
    given_ = {
        "sent": "date:now -383 seconds",
        "ends": "date:now +1 hour",
        "onset": "date:now +2 days",
        "at": "date:now",
        "expires": "date:now 52 hours",
        "closed": "date:today 16:00:-5 -24 hours",
        "opens": "date:today 16:00:-5",
    }
    assert moved(given_) == {
        "sent": "2027-01-15T07:53:37+00:00",
        "ends": "2027-01-15T09:00:00+00:00",
        "onset": "2027-01-17T08:00:00+00:00",
        "at": "2027-01-15T08:00:00+00:00",
        "expires": "2027-01-17T12:00:00+00:00",
        "closed": "2027-01-14T16:00:00-05:00",
        "opens": "2027-01-15T16:00:00-05:00",
    }


def test_feeds_and_tables_move_too():
    feed = b"<rss><pubDate>Wed, 01 Jul 2026 12:00:00 +0000</pubDate><at>2026-07-01T11:00:00Z</at></rss>"
    assert shifted(feed, T) == (
        b"<rss><pubDate>Fri, 15 Jan 2027 07:59:00 GMT</pubDate><at>2027-01-15T06:59:00Z</at></rss>"
    )
    assert shifted(b"date,v\n2026-07-01,1\n2026-06-30,2\n", T) == b"date,v\n2027-01-15,1\n2027-01-14,2\n"


def test_a_body_without_times_stays_as_it_is():
    assert shifted(b'{"a": [1, 2],  "b": "x"}', T) == b'{"a": [1, 2],  "b": "x"}'
    assert shifted(b"plain words", T) == b"plain words"


@given(st.lists(st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1)), min_size=1, max_size=6))
def test_order_and_distances_of_items_never_change(times):
    whole = [t.replace(microsecond=0, tzinfo=UTC) for t in times]
    rows = moved([{"time": t.isoformat()} for t in whole])
    read = [datetime.fromisoformat(row["time"]) for row in rows]
    assert max(read).timestamp() == T - 60
    assert [t - max(read) for t in read] == [t - max(whole) for t in whole]


def test_a_file_is_read_with_the_status_and_type_its_name_tells(recordings):
    (recordings / "toy" / "error-418-ip-ban.json").write_text('{"code":-1003}')
    (recordings / "toy" / "rows.csv").write_text("a,b\n")
    error, rows = (read_recorded(recordings, f"toy/{n}", False) for n in ("error-418-ip-ban.json", "rows.csv"))
    assert (error.status, error.content_type) == (418, "application/json")
    assert (rows.status, rows.content_type) == (200, "text/csv")


@pytest.mark.parametrize("name", ["../secret.txt", "toy/../../secret.txt", "/etc/hostname", "toy", "none.json", "a\0b"])
def test_nothing_outside_the_folder_is_read(recordings, name):
    (recordings.parent / "secret.txt").write_text("no")
    with pytest.raises(ControlRefused, match=re.escape("there is no recorded body")):
        read_recorded(recordings, name, False)


def test_without_a_folder_there_is_nothing_to_replay():
    with pytest.raises(ControlRefused, match="no folder"):
        read_recorded(None, "toy/a.json", False)


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("usgs-earthquakes/2.5_day-2026-07.json", lambda b: b["metadata"]["generated"] / 1000),
        ("noaa-swpc/kp-index-listform-2026-02.json", lambda b: _utc(b[-1][0])),
        ("noaa-swpc/kp-index-objectform-2026-10.json", lambda b: _utc(b[-1]["time_tag"])),
        ("coinbase/exchange-candles-60.json", lambda b: b[0][0]),
        ("blockchain-info/stats.json", lambda b: b["timestamp"] / 1000),
        ("alternative-me/fng-limit2.json", lambda b: int(b["data"][0]["timestamp"])),
        ("hn/algolia-search-30.json", lambda b: max(_utc(h["updated_at"][:-1]) for h in b["hits"])),
    ],
)
def test_recorded_bodies_look_like_now(sample, name, newest):
    assert abs(newest(json.loads(shifted(sample(name), T))) - (T - 60)) <= 90


def _utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
