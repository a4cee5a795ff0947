"""Rows that cannot be read: left out and counted, and too many of them are no answer."""

import csv
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.upstream.rows import ALWAYS_ALLOWED, USUAL_SHARE, RowCount, count_rows, read_rows
from toolserver.upstream.source_errors import SourceChanged, SourceEmpty, SourceLimited


def read(row):
    if isinstance(row, BaseException):
        raise row
    return row


@given(st.lists(st.one_of(st.integers(), st.none(), st.just("bad")), max_size=60), st.floats(0, 1))
def test_what_can_be_read_stays_in_order_and_the_rest_is_counted_up_to_the_share(rows, share):
    made = [ValueError("bad") if row == "bad" else row for row in rows]
    bad = rows.count("bad")
    with count_rows(share) as count:
        if bad and (bad == len(rows) or bad > max(3, share * len(rows))):
            with pytest.raises((SourceChanged, ValueError)):
                read_rows(made, read)
            return
        assert read_rows(made, read) == tuple(row for row in rows if row not in ("bad", None))
    assert count.dropped == bad


def test_the_lists_of_one_body_are_counted_together_and_bodies_apart():
    with count_rows(0.1) as first:
        read_rows([1, ValueError()], read)
        read_rows([2, KeyError("a"), csv.Error()], read)
        with count_rows(0.1) as inner:
            read_rows([1, IndexError()], read)
    with count_rows(0.1) as second:
        read_rows([1], read)
    assert (first.dropped, inner.dropped, second.dropped) == (3, 1, 0)


def test_the_share_is_told_with_the_first_reason():
    rows = [*range(36), *[ValueError("no number")] * 4]
    with pytest.raises(SourceChanged, match=r"^4 of 40 rows: ValueError: no number$"), count_rows(0.09):
        read_rows(rows, read)
    assert len(read_rows(rows, read)) == 36


def test_when_no_row_can_be_read_the_first_says_why():
    with pytest.raises(KeyError, match="magnitude"):
        read_rows([KeyError("magnitude"), ValueError("x")], read)


@pytest.mark.parametrize("error", [SourceLimited("quota"), SourceEmpty("nothing"), OSError("disk"), MemoryError()])
def test_what_is_not_about_the_row_ends_the_reading(error):
    with pytest.raises(type(error)):
        read_rows([1, error, 2], read)


def test_a_row_is_left_out_whatever_its_reader_stumbles_over():
    rows = [1, {"a": math.nan}["a"], SourceChanged("another kind"), RecursionError(), ZeroDivisionError(), 2]
    assert [row for row in read_rows(rows, read) if row == row] == [1, 2]


def test_the_rows_of_a_body_are_counted_with_those_that_were_left_out():
    with count_rows(0.5) as count:
        read_rows([1, None, ValueError()], read)
        read_rows([2], read)
    assert count == RowCount(0.5, dropped=1, seen=4)
    assert RowCount() == RowCount(0.1, 0, 0)


@pytest.mark.parametrize(("rows", "bad", "is_read"), [(10, 3, True), (10, 4, False), (50, 5, True), (50, 6, False)])
def test_three_rows_or_a_tenth_may_be_unreadable(rows, bad, is_read):
    given_rows = [*range(rows - bad), *[ValueError("no")] * bad]
    assert (USUAL_SHARE, ALWAYS_ALLOWED) == (0.1, 3)
    if is_read:
        assert len(read_rows(given_rows, read)) == rows - bad
    else:
        with pytest.raises(SourceChanged, match=f"{bad} of {rows} rows"):
            read_rows(given_rows, read)


def test_a_long_reason_is_cut():
    with pytest.raises(SourceChanged) as changed:
        read_rows([1, *[ValueError("x" * 500)] * 4], read)
    assert len(str(changed.value)) == 200
