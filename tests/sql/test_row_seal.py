"""Every table of money, rewritten row by row by someone who owns the file and not the key: each change is seen."""

import hashlib
import shutil
import sqlite3
from contextlib import closing

import msgspec
import pytest

from tests.size import a_share
from toolserver.sql.group_commit import run_jobs
from toolserver.sql.migrate import migrate
from toolserver.sql.row_seal import TABLES, RowSeal, SealBroken, find_schema_changes, read_seal
from toolserver.sql.sqlite import connect

KEY = b"k" * 32
VALUES = {"INTEGER": lambda n: n, "TEXT": lambda n: f"text {n}", "BLOB": lambda n: f"bytes {n}".encode()}


def columns_of(db, table):
    return [(name, kind) for name, kind in db.execute("SELECT name, type FROM pragma_table_info(?)", (table,))]


def keys_of(db, table):
    return [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))]


def row_of(db, table, number):
    """A row of the declared types, whatever the table's own rules say of it."""
    return [VALUES[kind](number + place) for place, (_, kind) in enumerate(columns_of(db, table))]


def loosen(db):
    for pragma in ("foreign_keys=OFF", "ignore_check_constraints=ON"):
        db.execute(f"PRAGMA {pragma}")
    return db


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
        seal.install(db)
        seal.seal(db)
        db.execute("BEGIN")
        for table in TABLES:
            marks = ", ".join("?" * len(columns_of(db, table)))
            db.executemany(f"INSERT INTO {table} VALUES({marks})", [row_of(db, table, n) for n in (1000, 2000)])
        seal.fold(db, db.changes)
        db.execute("COMMIT")
        assert seal.find_rewritten(db) == []
    return path


def test_a_row_is_hashed_with_the_key_as_files_in_use_have_it(seal):
    key = hashlib.blake2b(b"row", key=KEY, digest_size=32).digest()
    text = msgspec.msgpack.encode((3, ["call_1", 5, None, b"x"]))
    hashed = hashlib.blake2b(text, key=key, digest_size=32).digest()
    assert [seal._hash(3, ("call_1", 5, None, b"x")) for _ in range(2)] == [int.from_bytes(hashed, "big")] * 2


def rewritten_by(path, seal, change):
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
        return seal.find_rewritten(db)


@pytest.mark.parametrize("table", a_share(TABLES, 3))
def test_a_row_that_was_changed_in_any_column_is_seen(sealed, seal, table):
    with closing(connect(sealed)) as db:
        columns = columns_of(db, table)
        keys = ", ".join(keys_of(db, table))
    name, kind = columns[-1]
    last = f"({keys}) IN (SELECT {keys} FROM {table} ORDER BY {keys} DESC LIMIT 1)"

    def change_each(db):
        for name, kind in columns:
            db.execute("BEGIN")
            db.execute(f"UPDATE {table} SET {name}=? WHERE {last}", (VALUES[kind](7),))
            assert seal.find_rewritten(db) == [table], name
            db.execute("ROLLBACK")

    def change_the_last(db):
        db.execute(f"UPDATE {table} SET {name}=? WHERE {last}", (VALUES[kind](7),))

    assert rewritten_by(sealed, seal, change_each) == []
    assert rewritten_by(sealed, seal, change_the_last) == [table]


@pytest.mark.parametrize("table", a_share(TABLES, 3, first=1))
def test_a_row_that_was_deleted_is_seen(sealed, seal, table):
    def change(db):
        keys = ", ".join(keys_of(db, table))
        db.execute(f"DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM {table} LIMIT 1)")

    assert rewritten_by(sealed, seal, change) == [table]


@pytest.mark.parametrize("table", a_share(TABLES, 3, first=2))
@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR REPLACE"])
def test_a_row_that_was_added_or_replaced_is_seen(sealed, seal, table, verb):
    def change(db):
        row = row_of(db, table, 3000)
        if verb != "INSERT":
            keys = keys_of(db, table)
            old = db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
            names = [name for name, _ in columns_of(db, table)]
            row = [old[n] if name in keys else row[n] for n, name in enumerate(names)]
        db.execute(f"{verb} INTO {table} VALUES({', '.join('?' * len(row))})", row)

    assert rewritten_by(sealed, seal, change) == [table]


@pytest.mark.parametrize("table", a_share(TABLES, 3))
def test_two_rows_that_exchanged_their_contents_are_seen(sealed, seal, table):
    def change(db):
        places = [n for n, (name, _) in enumerate(columns_of(db, table)) if name in keys_of(db, table)]
        rows = [list(row) for row in db.execute(f"SELECT * FROM {table}")]
        one, two = rows[-2:]
        for place in places:
            one[place], two[place] = two[place], one[place]
        db.execute(f"DELETE FROM {table}")
        db.executemany(f"INSERT INTO {table} VALUES({', '.join('?' * len(one))})", rows)

    assert rewritten_by(sealed, seal, change) == [table]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE row_seal SET counter=counter+1",
        "UPDATE row_seal SET sums=zeroblob(length(sums))",
        "UPDATE row_seal SET nonce=zeroblob(16)",
        "UPDATE row_seal SET mac=zeroblob(32)",
        "UPDATE row_seal SET sums=x'00'",
    ],
)
def test_a_seal_that_was_changed_is_no_seal(sealed, seal, damage):
    assert rewritten_by(sealed, seal, lambda db: db.execute(damage)) == [
        "the seal was not made with the key of this data directory"
    ]


def test_a_seal_that_was_deleted_is_missed(sealed, seal):
    assert rewritten_by(sealed, seal, lambda db: db.execute("DELETE FROM row_seal")) == ["the seal is missing"]


def test_a_seal_of_another_key_is_not_ours(sealed):
    with closing(connect(sealed)) as db:
        assert RowSeal(b"x" * 32).find_rewritten(db) == ["the seal was not made with the key of this data directory"]


def test_a_change_of_ours_is_not_sealed_over_a_seal_of_others(sealed, seal):
    with closing(loosen(connect(sealed))) as db:
        db.execute("UPDATE row_seal SET mac=zeroblob(32)")
        seal.install(db)
        db.execute("BEGIN")
        db.execute("DELETE FROM journal")
        with pytest.raises(SealBroken):
            seal.fold(db, db.changes)


def test_what_was_rolled_back_is_not_counted(sealed, seal):
    def refused(db):
        db.execute("DELETE FROM journal")
        raise ValueError("on purpose")

    with closing(loosen(connect(sealed))) as db:
        seal.install(db)
        db.execute("BEGIN")
        outcomes = run_jobs(db, [refused, lambda db: db.execute("DELETE FROM payment_review").rowcount])
        seal.fold(db, db.changes)
        db.execute("COMMIT")
        assert [type(each) for each in outcomes] == [ValueError, int]
        assert seal.find_rewritten(db) == []


def test_the_stored_sums_look_different_after_every_transaction(sealed, seal):
    with closing(loosen(connect(sealed))) as db:
        before = read_seal(db)
        seal.install(db)
        db.execute("BEGIN")
        db.execute("DELETE FROM journal")
        seal.fold(db, db.changes)
        db.execute("COMMIT")
        after = read_seal(db)
    assert after.counter == before.counter + 1
    same = [at for at in range(0, len(after.sums), 32) if after.sums[at : at + 32] == before.sums[at : at + 32]]
    assert same == []
