"""/status: the verdict first, then what is not well, and nothing about what nobody asked."""

import pytest

from rest_bridge.pages.status import status_page, write_span, write_uptime, write_verdict
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from tests.rest_bridge.statuses import CHANGE, DAY, status_of, summed

DOWN = {"state": "down", "circuit": "half_open", "last": "timeout", "changed_at": CHANGE["at"], "day": DAY}


def shown(**more):
    return Page(status_page(TINY, FACTS, status_of(TINY, **more)).body)


def test_a_source_that_is_down_stands_with_its_reason_circuit_and_change():
    page = shown(states={"Sample.place": DOWN | {"past_day": summed(40, 3, 1)}}, changes=[CHANGE])
    assert page.faults == []
    words = " ".join(page.text.split())
    assert "Of 1 sources that were asked, 1 down: others take their place." in words
    assert "down: timeout" in words
    assert "half open" in words
    assert "10.0% of 40" in words
    assert "(timeout)" in words
    assert "2 good" not in words  # it is told to those who do not see, as the label of the strip


def test_a_source_that_nobody_asked_has_no_row_and_is_named_below():
    page = shown()
    words = " ".join(page.text.split())
    assert "No source has been asked in the past 24 hours." in words
    assert "svg" in page.names  # of the legend
    assert page.ids.count("Sample.place") == 1
    assert "nothing is known of these" in words


def test_the_service_its_times_ledger_and_chain_are_told():
    words = " ".join(shown(states={"Sample.place": {"state": "up", "last": "ok"}}).text.split())
    for told in ("Everything works: 1 sources", "12,345", "half within 5 ms, 95 % within 2 s", "12,000 from the cache"):
        assert told in words
    assert "1 of 2 RPC servers" in words
    assert "Calls in 2 h" in words


def test_a_check_that_fails_is_named():
    status = status_of(TINY, status="degraded", checks={"running": True, "disk_space": False})
    assert write_verdict(status) == "This instance takes no calls that change anything: disk space is not well."


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
