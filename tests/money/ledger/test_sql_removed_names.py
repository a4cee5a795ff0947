"""What was removed is found again in its block, in whatever order names came, and its block forgets nothing."""

import random
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.postgres import POSTGRES, terms_of
from tests.quick_files import migrate_copied
from toolserver.money.ledger.sql_removed_names import SIZE, find_months, find_removed, keep_names, move_names
from toolserver.sql.errors import ConstraintViolated
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_migrate import migrate_server

REFUSED = (sqlite3.IntegrityError, ConstraintViolated)


def open_file():
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate_copied(db)
    return closing(db)


@pytest.fixture(params=["sqlite", POSTGRES])
def db(request, tmp_path):
    if request.param == "sqlite":
        with open_file() as db:
            yield db
    else:
        with closing(PostgresConnection(terms_of(tmp_path))) as db:
            migrate_server(db)
            yield db


def name(number):
    return number.to_bytes(16)


def names(*numbers, month=202701):
    return {name(number): month for number in numbers}


def read_blocks(db):
    rows = db.execute("SELECT first, names FROM removed_block ORDER BY first")
    return [(bytes(first), bytes(names)) for first, names in rows]


def count_rows(db):
    return [len(block) // 18 for _, block in read_blocks(db)]


def test_names_in_their_order_fill_one_block_after_the_other(db):
    for first in range(1, 1001, 100):
        keep_names(db, names(*range(first, first + 100)), are_receipts=True)
    assert count_rows(db) == [SIZE, SIZE, SIZE, 1000 - 3 * SIZE]
    assert find_months(db, [name(1), name(700), name(1000), name(1001)]) == names(1, 700, 1000)


def test_names_between_others_split_their_block_in_halves(db):
    keep_names(db, names(*range(0, 2 * SIZE, 2)), are_receipts=True)
    keep_names(db, names(101), are_receipts=True)
    assert count_rows(db) == [SIZE // 2 + 1, SIZE // 2]
    keep_names(db, names(*range(1, 2 * SIZE, 2)), are_receipts=True)
    assert find_months(db, list(names(*range(2 * SIZE + 5)))) == names(*range(2 * SIZE))


def test_the_month_of_a_receipt_replaces_that_of_its_call_and_not_the_other_way_round(db):
    keep_names(db, names(1, 2), are_receipts=False)
    keep_names(db, names(1, month=202712), are_receipts=True)
    keep_names(db, names(1, 2, month=202801), are_receipts=False)
    assert find_months(db, [name(1), name(2)]) == {name(1): 202712, name(2): 202701}


def test_names_of_another_shape_are_rows_of_their_own(db):
    keep_names(db, {b"of another shape": 202701, b"short": 202702}, are_receipts=True)
    keep_names(db, {b"short": 202703}, are_receipts=False)
    assert find_removed(db, ["short", "of no shape"]) == {"short"}
    assert db.execute("SELECT count(*) FROM removed_name").fetchone()[0] == 1


def test_names_of_earlier_versions_move_into_blocks_and_the_others_stay(db):
    for number in range(300):
        db.execute("INSERT INTO removed_name VALUES (?, ?)", (name(number), 202702))
    db.execute("INSERT INTO removed_name VALUES (?, ?)", (b"short", 202702))
    keep_names(db, names(7, 400), are_receipts=False)
    before = find_months(db, [name(7), name(8)])
    after, turns = b"", 0
    while (after := move_names(db, after, 100)) is not None:
        turns += 1
    assert (turns, before) == (3, names(7) | names(8, month=202702))
    assert [bytes(left) for (left,) in db.execute("SELECT name FROM removed_name")] == [b"short"]
    assert find_months(db, list(names(*range(300)))) == names(*range(300), month=202702)
    assert find_months(db, [b"short"]) == {b"short": 202702}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM removed_block",
        "UPDATE removed_block SET names=substr(names, 1, 18)",
        "DELETE FROM removed_name",
    ],
)
def test_what_was_removed_is_never_forgotten(db, statement):
    keep_names(db, names(1, 2), are_receipts=True)
    db.execute("INSERT INTO removed_name VALUES (?, ?)", (name(3), 202702))
    with pytest.raises(REFUSED, match="never forgotten"):
        db.execute(statement)


@given(st.lists(st.sets(st.integers(0, 3000), max_size=700), max_size=6), st.randoms(use_true_random=False))
def test_every_name_is_found_whatever_the_order(groups, rng):
    with open_file() as db:
        kept = {}
        for month, group in enumerate(groups, 202701):
            new = names(*group, month=month)
            keep_names(db, dict(rng.sample(list(new.items()), len(new))), are_receipts=True)
            kept |= new
        assert find_months(db, [name(number) for number in range(3001)]) == kept
        blocks = read_blocks(db)
        assert all(1 <= len(block) // 18 <= SIZE for _, block in blocks)
        ordered = [block[at : at + 16] for _, block in blocks for at in range(0, len(block), 18)]
        assert ordered == sorted(kept)


def test_names_that_were_drawn_fill_half_of_their_blocks_at_least(db):
    rng = random.Random(1)
    for _ in range(20):
        keep_names(db, {rng.randbytes(16): 202701 for _ in range(100)}, are_receipts=True)
    assert len(count_rows(db)) <= 2 * 2000 / SIZE
