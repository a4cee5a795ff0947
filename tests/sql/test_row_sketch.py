"""Sketches: those of two sets of rows add up, and their difference names the rows in which the sets differ."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.sql.row_seal import DIGEST, RowSketch, SketchedRow, short_digest, size_of, write_name

TABLES = 5
rows = st.tuples(st.integers(0, TABLES - 1), st.text(max_size=30))


def digest_of(row):
    return hashlib.blake2b(repr(row).encode(), digest_size=DIGEST).digest()


def sketch_of(rows):
    sketch = RowSketch(TABLES)
    for table, name in rows:
        sketch.toggle(table, name, digest_of((table, name)))
    return sketch


def read(packed):
    sketch = RowSketch.unpack(packed, TABLES)
    return list(sketch.read_rows()), sketch.is_read


@given(st.sets(rows, max_size=40), st.sets(rows, max_size=6))
def test_the_difference_of_two_sets_is_read_from_their_sketches(common, others):
    found, is_read = read(sketch_of(common).pack() ^ sketch_of(common ^ others).pack())
    if is_read:  # a few rows may share all of their cells
        shorts = {short_digest(digest_of(row)): row for row in others}
        assert {row.short for row in found} == set(shorts)
        assert all(row.table == shorts[row.short][0] for row in found)


@pytest.mark.parametrize("count", [1, 2, 10, 20])
def test_so_many_rows_can_be_told_apart(count):
    others = {(number % TABLES, f"call_{number}") for number in range(count)}
    found, is_read = read(sketch_of(others).pack())
    assert is_read
    assert {(row.table, row.name) for row in found} == others


def test_too_many_rows_are_not_read_wrongly():
    others = {(number % TABLES, f"call_{number}") for number in range(500)}
    found, is_read = read(sketch_of(others).pack())
    assert not is_read
    assert {(row.table, row.name) for row in found} <= others


def test_the_order_of_writers_and_rows_does_not_matter():
    all_rows = [(number % TABLES, f"r{number}") for number in range(30)]
    one, other = sketch_of(all_rows[:11]), sketch_of(reversed(all_rows[11:]))
    assert one.pack() ^ other.pack() == sketch_of(all_rows).pack()


@given(st.lists(rows, max_size=30))
def test_many_rows_of_a_table_at_once_are_the_same_as_one_by_one(some):
    sketch = RowSketch(TABLES)
    for table in range(TABLES):
        here = [row for row in some if row[0] == table]
        sketch.toggle_rows(table, [write_name(name) for _, name in here], map(digest_of, here))
    assert sketch.pack() == sketch_of(some).pack()


def test_a_row_without_a_digest_is_refused():
    with pytest.raises(ValueError, match="zip"):
        RowSketch(TABLES).toggle_rows(0, [b"a", b"b"], [digest_of((0, "a"))])


def test_a_sketch_of_fewer_tables_is_one_of_more():
    sketch = sketch_of({(0, "a"), (4, "b")})
    assert sketch.pack() < 1 << 8 * size_of(TABLES)
    more = RowSketch.unpack(sketch.pack(), TABLES + 3)
    assert more.totals == [*sketch.totals, 0, 0, 0]
    assert sorted(more.read_rows()) == sorted(sketch.read_rows())


def test_a_long_name_is_cut():
    (row,), is_read = read(sketch_of({(1, "\u00e9" * 20)}).pack())
    assert (row, is_read) == (SketchedRow(row.short, 1, "\u00e9" * 12 + "\ufffd"), True)


def test_rows_that_share_all_of_their_cells_are_told_apart_if_one_of_them_is_at_hand():
    one, other = bytes(range(24)) + b"ab", bytes(range(100, 124)) + b"ab"
    sketch = RowSketch(TABLES)
    sketch.toggle(2, "same", one)
    sketch.toggle(2, "same", other)
    assert list(sketch.read_rows()) == []
    assert sketch.split_cell(2, "another", bytes(DIGEST)) == []
    found = sketch.split_cell(2, "same", one)
    assert {row.short for row in found} == {short_digest(one), short_digest(other)}
    assert sketch.is_read
