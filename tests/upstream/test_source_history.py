"""The past day of sources: exchanges by quarters of an hour, and the times that they went down and came back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.upstream.source_health import CHANGES, QUARTER_S, QUARTERS, SourceChange, SourceHistory, SourceQuarter


class Kept:
    """What was given to be stored."""

    def __init__(self):
        self.rows, self.changes = {}, []

    def save_quarter(self, source, row):
        self.rows[source, row.quarter] = row

    def save_change(self, change):
        self.changes.append(change)


@pytest.fixture
def clock():
    return ManualClock(START)


def test_exchanges_of_a_quarter_are_counted_together_and_those_of_the_next_apart(clock):
    history = SourceHistory(clock)
    for verdict, word in (("good", "ok"), ("failed", "timeout"), ("old", "frozen")):
        history.count("A", verdict, word)
    first = clock.time()
    clock.advance(QUARTER_S)
    history.count("A", "failed", "http_500")

    one, two = history.quarters("A")
    assert (one.good, one.old, one.failed, one.asked, one.last, one.good_at) == (1, 1, 1, 3, "frozen", first)
    assert (two.good, two.failed, two.last, two.good_at) == (0, 1, "http_500", None)
    assert two.quarter == one.quarter + 1


def test_a_quarter_in_which_nobody_asked_has_no_row(clock):
    history = SourceHistory(clock)
    history.count("A", "good", "ok")
    clock.advance(3 * QUARTER_S)
    history.count("A", "good", "ok")
    assert len(history.quarters("A")) == 2
    assert history.quarters("B") == []


def test_what_is_older_than_a_day_is_left_out(clock):
    history = SourceHistory(clock)
    history.count("A", "good", "ok")
    clock.advance(QUARTERS * QUARTER_S)
    assert history.quarters("A") == []


@given(st.lists(st.integers(0, 40), max_size=300))
def test_memory_is_bounded_however_long_it_runs(pauses):
    clock = ManualClock(START)
    history = SourceHistory(clock)
    for pause in pauses:
        clock.advance(pause * QUARTER_S)
        history.count("A", "good", "ok")
        history.note("A", "down", "timeout")
    rows = history.quarters("A")
    assert len(rows) <= QUARTERS
    assert [row.quarter for row in rows] == sorted({row.quarter for row in rows})
    assert len(history.changes()) == min(CHANGES, len(pauses))


def test_a_restart_goes_on_where_the_last_process_ended(clock):
    kept = Kept()
    before = SourceHistory(clock, kept)
    before.count("A", "good", "ok")
    before.note("A", "down", "timeout")
    clock.advance(60)

    after = SourceHistory(clock, kept)
    after.restore([(source, row) for (source, _), row in kept.rows.items()], kept.changes)
    after.count("A", "failed", "timeout")
    (row,) = after.quarters("A")
    assert (row.good, row.failed, row.good_at) == (1, 1, START.timestamp())
    assert [change.source for change in after.changes()] == ["A"]
    assert kept.rows["A", row.quarter] == row


def test_the_newest_change_comes_first(clock):
    history = SourceHistory(clock)
    history.note("A", "down", "timeout")
    clock.advance(5)
    history.note("A", "back", "ok")
    assert [(change.kind, change.reason) for change in history.changes()] == [("back", "ok"), ("down", "timeout")]
    assert history.changes()[0].at - history.changes()[1].at == 5


def test_a_quarter_says_when_the_last_exchange_and_the_last_good_one_ended(clock):
    history = SourceHistory(clock)
    begun = clock.time()
    history.count("A", "good", "ok")
    clock.advance(60)
    history.count("A", "failed", "timeout")
    assert history.quarters("A") == [SourceQuarter(int(begun // 900), 1, 0, 1, begun, begun + 60, "timeout")]
    history.note("A", "down", "timeout")
    assert history.changes() == [SourceChange(begun + 60, "A", "down", "timeout")]


def test_the_past_day_is_96_quarters_with_the_one_that_runs(clock):
    history = SourceHistory(clock)
    history.count("A", "good", "ok")
    clock.advance((QUARTERS - 1) * QUARTER_S)
    assert len(history.quarters("A")) == 1
    clock.advance(QUARTER_S - 1)
    assert len(history.quarters("A")) == 1
    clock.advance(1)
    assert history.quarters("A") == []
    assert (QUARTERS, QUARTER_S, CHANGES) == (96, 900, 200)


def test_a_row_that_is_older_than_the_last_one_is_not_taken(clock):
    history = SourceHistory(clock)
    now = int(clock.time() // QUARTER_S)
    rows = [SourceQuarter(now - 1, 1), SourceQuarter(now, 1), SourceQuarter(now, 2), SourceQuarter(now - 1, 9)]
    history.restore([("A", row) for row in rows], [])
    assert [(row.quarter - now, row.good) for row in history.quarters("A")] == [(-1, 1), (0, 2)]
