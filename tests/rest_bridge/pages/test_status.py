"""/status: the verdict first, then what is not well, and nothing about what nobody asked."""

import re

import pytest

from rest_bridge.pages.status import ORDER, status_page, write_span, write_uptime, write_verdict
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from tests.rest_bridge.statuses import CHANGE, DAY, source_of, status_of, summed

DOWN = {"state": "down", "circuit": "half_open", "last": "timeout", "changed_at": CHANGE["at"], "day": DAY}


def shown(**more):
    return Page(status_page(TINY, FACTS, status_of(TINY, **more)).body)


def test_a_source_that_is_down_stands_with_its_reason_circuit_and_change():
    page = shown(states={"Sample.place": DOWN | {"past_day": summed(40, 3, 1)}}, changes=[CHANGE])
    assert page.faults == []
    words = " ".join(page.text.split())
    assert "Of 1 sources asked, 1 down; other sources take their place." in words
    assert "down: timeout" in words
    assert "one at a time" in words
    assert "10.0% of 40" in words
    assert "(timeout)" in words
    assert "2 good" not in words  # it is told to those who do not see, as the label of the strip


def test_a_source_that_nobody_asked_has_no_row_and_is_named_below():
    page = shown()
    words = " ".join(page.text.split())
    assert "No source has been asked in the past 24 hours." in words
    assert "svg" in page.names  # of the legend
    assert page.ids.count("Sample.place") == 1
    assert "their state is not known" in words


def test_the_service_its_times_ledger_and_chain_are_told():
    words = " ".join(shown(states={"Sample.place": {"state": "up", "last": "ok"}}).text.split())
    for phrase in (
        "Everything works: 1 sources",
        "12,345",
        "half within 5 ms, 95 % within 2 s",
        "12,000 from the cache",
    ):
        assert phrase in words
    assert "1 of 2 RPC servers" in words
    assert "Calls in 2 h" in words


def test_a_check_that_fails_is_named():
    status = status_of(TINY, status="degraded", checks={"running": True, "disk_space": False})
    assert write_verdict(status) == "This instance accepts no calls that change data. Failing checks: disk space."


@pytest.mark.parametrize(("seconds", "words"), [(None, "no bound"), (0.02, "20 ms"), (2.0, "2 s")])
def test_bounds_are_written_in_the_unit_that_fits(seconds, words):
    assert write_span(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(59, "59 s"), (61, "1 min"), (7300, "2 h"), (200_000, "2 d")])
def test_the_uptime_is_rounded_down(seconds, words):
    assert write_uptime(seconds) == words


def test_what_is_not_well_is_never_hidden_and_what_was_not_asked_is_folded():
    up = {"state": "up", "last": "ok", "past_day": summed(4)}
    body = status_page(TINY, FACTS, status_of(TINY, states={"Sample.place": DOWN | {"past_day": summed(4, 4)}})).body
    assert body.index(b'id="Sample.place"') < (body + b"<details").index(b"<details")
    words = status_page(TINY, FACTS, status_of(TINY, states={"Sample.place": up})).body
    assert b'id="up" open' in words
    assert b'<tr id="Sample.place" class=calm>' in words
    assert b"Not well" not in words
    assert b'id="not-asked">' in status_page(TINY, FACTS, status_of(TINY)).body


def test_the_twenty_newest_changes_are_shown():
    changes = [CHANGE | {"reason": f"reason_{number}"} for number in range(21)]
    text = shown(changes=changes).text
    assert [number for number in range(21) if f"(reason_{number})" in text] == list(range(20))


def test_sources_with_faults_come_first_and_each_kind_by_name():
    assert ORDER == ("down", "failing", "up", "unknown")
    names = [("B.up", "up"), ("A.failing", "failing"), ("C.down", "down"), ("A.up", "up")]
    status = status_of(TINY) | {"sources": [source_of(name, state, past_day=summed(1)) for name, state in names]}
    body = status_page(TINY, FACTS, status).body.decode()
    assert re.findall(r'<tr id="([^"]+)"', body) == ["C.down", "A.failing", "A.up", "B.up"]


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({"up": 2, "failing": 1, "down": 0, "unknown": 4}, "Of 3 sources asked, 1 failing; other"),
        ({"up": 2, "failing": 1, "down": 3, "unknown": 4}, "Of 6 sources asked, 3 down and 1 failing; other"),
        ({"up": 2, "failing": 0, "down": 0, "unknown": 4}, "Everything works: 2 sources answered when last asked."),
        ({"up": 0, "failing": 0, "down": 0, "unknown": 4}, "No source has been asked in the past 24 hours."),
    ],
)
def test_the_verdict_counts_what_was_asked(counts, verdict):
    assert verdict in write_verdict(status_of(TINY, counts=counts))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(60, "1 min"), (3599, "59 min"), (3600, "1 h"), (86399, "23 h"), (86400, "1 d"), (0, "0 s")],
)
def test_the_uptime_changes_its_unit_when_a_whole_one_is_full(seconds, words):
    assert write_uptime(seconds) == words


def test_a_bound_of_a_second_is_no_longer_told_in_thousandths():
    assert [write_span(seconds) for seconds in (0.999, 1.0, 0.0005)] == ["999 ms", "1 s", "0.5 ms"]
