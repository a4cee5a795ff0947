"""Every table of money, rewritten row by row by someone who owns the file and not the key: each change is named."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.size import a_share
from toolserver.sql.group_commit import run_jobs
from toolserver.sql.migrate import migrate
from toolserver.sql.row_seal import NOT_SEALED, TABLES, RowSeal, SealBroken, name_row, read_seals
from toolserver.sql.sealed_file import find_rewritten_rows, find_schema_changes, install_seal, seal_all, seal_changes
from toolserver.sql.sqlite import connect

KEY = b"k" * 32
VALUES = {"INTEGER": lambda n: n, "TEXT": lambda n: f"text {n}", "BLOB": lambda n: f"bytes {n}".encode()}
NOT_OURS = ["the seal was not made with the key of this data directory"]


def columns_of(db, table):
    return [(name, kind) for name, kind in db.execute("SELECT name, type FROM pragma_table_info(?)", (table,))]


def keys_of(db, table):
    return [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))]


def row_of(db, table, number):
    """A row of the declared types, whatever the table's own rules say of it."""
    return [VALUES[kind](number + place) for place, (_, kind) in enumerate(columns_of(db, table))]


def name_of(db, table, row):
    """How a row is named, as far as there is room for it."""
    places = [name for name, _ in columns_of(db, table)]
    return name_row([row[places.index(name)] for name in keys_of(db, table)]).encode()[:25].decode()


def loosen(db):
    for pragma in ("foreign_keys=OFF", "ignore_check_constraints=ON"):
        db.execute(f"PRAGMA {pragma}")
    return db


def find_rewritten(db):
    return find_rewritten_rows(db, KEY)


@pytest.fixture
def seal():
    return RowSeal(KEY)


@pytest.fixture
def sealed(tmp_path, filled):
    """A file of the test's own with two rows in each table, sealed."""
    return shutil.copy(filled, tmp_path / "x.sqlite3")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The same for all tests, to copy."""
    path, seal = tmp_path_factory.mktemp("filled") / "x.sqlite3", RowSeal(KEY)
    with closing(loosen(connect(path))) as db:
        migrate(db)
        install_seal(db, seal)
        seal_all(db, seal)
        db.execute("BEGIN")
        for table in TABLES:
            marks = ", ".join("?" * len(columns_of(db, table)))
            db.executemany(f"INSERT INTO {table} VALUES({marks})", [row_of(db, table, n) for n in (1000, 2000)])
        seal_changes(db)
        db.execute("COMMIT")
        assert find_rewritten(db) == []
    return path


def test_every_table_is_sealed_or_named_with_the_reason_why_it_is_not():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert tables == {*TABLES, *NOT_SEALED}
    assert not set(TABLES) & set(NOT_SEALED)


def rewritten_by(path, change):
    """What is found after a change that left every trigger and index as it was."""
    with closing(loosen(sqlite3.connect(path, isolation_level=None))) as db:
        guards = db.execute("SELECT type, name, sql FROM sqlite_master WHERE type<>'table' AND sql IS NOT NULL")
        guards = guards.fetchall()
        for kind, name, _ in guards:
            db.execute(f"DROP {kind} {name}")
        change(db)
        for _, _, sql in guards:
            db.execute(sql)
        assert find_schema_changes(db) == []
        return find_rewritten(db)


@pytest.mark.parametrize("table", a_share(TABLES, 3))
def test_a_row_that_was_changed_in_any_column_is_named(sealed, table):
    """A key that was changed is another row: it is named as removed, and the new one as added."""
    with closing(connect(sealed)) as db:
        columns, keys = columns_of(db, table), keys_of(db, table)

    def change_each(db):
        first = db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys)} DESC LIMIT 1").fetchone()
        is_last = f"({', '.join(keys)}) = ({', '.join('?' * len(keys))})"
        key = [first[[name for name, _ in columns].index(name)] for name in keys]
        before = f"{table} {name_of(db, table, first)}"
        for place, (name, kind) in enumerate(columns):
            after = list(first)
            after[place] = VALUES[kind](7)
            db.execute("BEGIN")
            db.execute(f"UPDATE {table} SET {name}=? WHERE {is_last}", (after[place], *key))
            if (now := f"{table} {name_of(db, table, after)}") == before:
                assert find_rewritten(db) == [f"{before} was changed"], name
            else:
                assert find_rewritten(db) == [f"{now} was added", f"{before} was removed"], name
            db.execute("ROLLBACK")

    assert rewritten_by(sealed, change_each) == []


@pytest.mark.parametrize("table", a_share(TABLES, 3, first=1))
def test_a_row_that_was_deleted_is_named(sealed, table):
    with closing(connect(sealed)) as db:
        keys = ", ".join(keys_of(db, table))
        gone = db.execute(f"SELECT * FROM {table} ORDER BY {keys} LIMIT 1").fetchone()
        name = name_of(db, table, gone)

    def change(db):
        db.execute(f"DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1)")

    assert rewritten_by(sealed, change) == [f"{table} {name} was removed"]


@pytest.mark.parametrize("table", a_share(TABLES, 3, first=2))
@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR REPLACE"])
def test_a_row_that_was_added_or_replaced_is_named(sealed, table, verb):
    with closing(connect(sealed)) as db:
        row, what = row_of(db, table, 3000), "added"
        if verb != "INSERT":
            keys, what = keys_of(db, table), "changed"
            old = db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
            names = [name for name, _ in columns_of(db, table)]
            if set(names) == set(keys):
                pytest.skip("every column belongs to the key")
            row = [old[n] if name in keys else row[n] for n, name in enumerate(names)]
        name = name_of(db, table, row)

    def change(db):
        db.execute(f"{verb} INTO {table} VALUES({', '.join('?' * len(row))})", row)

    assert rewritten_by(sealed, change) == [f"{table} {name} was {what}"]


@pytest.mark.parametrize("table", a_share(TABLES, 3))
def test_two_rows_that_exchanged_their_contents_are_named(sealed, table):
    names = []

    def change(db):
        places = [n for n, (name, _) in enumerate(columns_of(db, table)) if name in keys_of(db, table)]
        rows = [list(row) for row in db.execute(f"SELECT * FROM {table}")]
        one, two = rows[-2:]
        names.extend(sorted(name_of(db, table, row) for row in (one, two)))
        for place in places:
            one[place], two[place] = two[place], one[place]
        db.execute(f"DELETE FROM {table}")
        db.executemany(f"INSERT INTO {table} VALUES({', '.join('?' * len(one))})", rows)

    assert rewritten_by(sealed, change) == [f"{table} {name} was changed" for name in names]


def test_a_row_of_others_that_we_wrote_to_later_is_still_named(sealed, seal):
    def change(db):
        db.execute("UPDATE account SET credits=credits+5 WHERE id=1000")

    assert rewritten_by(sealed, change) == ["account 1000 was changed"]
    with closing(loosen(connect(sealed))) as db:
        install_seal(db, seal)
        db.execute("BEGIN")
        db.execute("UPDATE account SET debits=debits+1 WHERE id=1000")
        seal_changes(db)
        db.execute("COMMIT")
        assert find_rewritten(db) == ["account 1000 was changed"]


def test_more_rows_than_can_be_told_apart_are_named_by_their_tables(sealed):
    def change(db):
        db.executemany("INSERT INTO account VALUES(?,'token',1,0,0)", [(number,) for number in range(5000, 5200)])
        db.execute("UPDATE journal SET tries=tries+1")

    found = rewritten_by(sealed, change)
    assert {line.split()[0].rstrip(":") for line in found} == {"account", "journal"}
    assert "account: more rows were changed" in found


def test_a_few_rows_of_many_are_counted(sealed):
    def change(db):
        db.executemany("INSERT INTO account VALUES(?,'token',1,0,0)", [(number,) for number in range(5000, 5008)])

    expected = [*(f"account {number} was added" for number in range(5000, 5005)), "account: 3 more"]
    assert rewritten_by(sealed, change) == expected


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE writer_seal SET commits=commits+1",
        "UPDATE writer_seal SET at=at+1",
        "UPDATE writer_seal SET writer=1",
        "UPDATE writer_seal SET sketch=zeroblob(length(sketch))",
        "UPDATE writer_seal SET nonce=zeroblob(16)",
        "UPDATE writer_seal SET before=zeroblob(32)",
        "UPDATE writer_seal SET head=zeroblob(32)",
        "UPDATE writer_seal SET sketch=x'00'",
    ],
)
def test_a_seal_that_was_changed_is_no_seal(sealed, damage):
    found = rewritten_by(sealed, lambda db: db.execute(damage))
    assert found == (["the seal is missing"] if "writer=1" in damage else NOT_OURS)


def test_a_seal_that_was_deleted_is_missed(sealed):
    assert rewritten_by(sealed, lambda db: db.execute("DELETE FROM writer_seal")) == ["the seal is missing"]


def test_a_seal_of_another_key_is_not_ours(sealed):
    with closing(connect(sealed)) as db:
        assert find_rewritten_rows(db, b"x" * 32) == NOT_OURS


def test_a_change_of_ours_is_not_sealed_over_a_seal_of_others(sealed, seal):
    with closing(loosen(connect(sealed))) as db:
        db.execute("UPDATE writer_seal SET head=zeroblob(32)")
        install_seal(db, seal)
        db.execute("BEGIN")
        db.execute("DELETE FROM journal")
        with pytest.raises(SealBroken):
            seal_changes(db)


def test_what_was_rolled_back_is_not_counted(sealed, seal):
    def refused(db):
        db.execute("DELETE FROM journal")
        raise ValueError("on purpose")

    with closing(loosen(connect(sealed))) as db:
        install_seal(db, seal)
        db.execute("BEGIN")
        outcomes = run_jobs(db, [refused, lambda db: db.execute("DELETE FROM payment_review").rowcount])
        seal_changes(db)
        db.execute("COMMIT")
        assert [type(each) for each in outcomes] == [ValueError, int]
        assert find_rewritten(db) == []


def test_a_row_that_came_and_went_in_one_transaction_makes_no_seal(sealed, seal):
    with closing(loosen(connect(sealed))) as db:
        before = read_seals(db)
        install_seal(db, seal)
        db.execute("BEGIN")
        db.execute("INSERT INTO journal VALUES('call', 'committed', NULL, 0, 0)")
        db.execute("DELETE FROM journal WHERE call_id='call'")
        seal_changes(db)
        db.execute("COMMIT")
        assert read_seals(db) == before


def test_each_head_follows_from_the_one_before_and_stored_sketches_look_like_noise(sealed, seal):
    with closing(loosen(connect(sealed))) as db:
        (before,) = read_seals(db)
        install_seal(db, seal)
        db.execute("BEGIN")
        db.execute("DELETE FROM journal")
        seal_changes(db)
        db.execute("COMMIT")
        (after,) = read_seals(db)
    assert (after.commits, after.before) == (before.commits + 1, before.head)
    pieces = {before.sketch[at : at + 8] for at in range(0, len(before.sketch), 8)}
    assert not pieces & {after.sketch[at : at + 8] for at in range(0, len(after.sketch), 8)}
