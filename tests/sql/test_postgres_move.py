"""The server's side of a move: an empty database only, page by page, and on from where it was interrupted."""

from contextlib import closing

import pytest

from tests.postgres import run_sql, terms_of, url_of
from toolserver.sql import kept_tables
from toolserver.sql.connection import next_numbers
from toolserver.sql.errors import DatabaseUnusable, OtherWorld, StorageFailed
from toolserver.sql.kept_tables import list_kept_tables, read_table_facts
from toolserver.sql.ledger_place import read_place
from toolserver.sql.migrate import migrate
from toolserver.sql.move_mark import COMPLETE, COPYING, MoveMark
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import migrate_server
from toolserver.sql.postgres_move import (
    MoveRefused,
    MoveUnfinished,
    count_sealed,
    is_new,
    open_source,
    open_target,
    require_whole,
)
from toolserver.sql.sqlite import connect

pytestmark = pytest.mark.live
TOKENS = 25


@pytest.fixture
def path(tmp_path):
    """A file with tokens, transfers that answer one another, nodes of the log, and quotes that were put aside."""
    path = tmp_path / "ledger.sqlite3"
    with closing(connect(path)) as db:
        migrate(db)
        db.execute("BEGIN")
        for number in range(1, TOKENS + 1):
            db.execute("INSERT INTO account VALUES(?,'token',9,0,0)", (number + 3,))
            row = (f"{number:064x}", number + 3, f"acct_{number}")
            db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES(?,?,?,1)", row)
        for seq in range(1, 201):
            answered = seq - 1 if seq % 2 == 0 else None
            row = (seq, "post" if answered else "pending", 4, 2, 1, answered, None, seq)
            db.execute("INSERT INTO transfer VALUES(?,?,?,?,?,?,?,?)", row)
            db.execute("INSERT INTO log_node VALUES(?,?,?)", (seq % 3, seq, bytes(32)))
        db.execute("INSERT INTO receipt VALUES(41,'rcpt_1',?,?,'k',?,1)", ("a" * 64, b"{}", bytes(64)))
        quote = (bytes(32), 77, bytes(20), 12, 1, 1, None, 1, 2)
        db.execute("INSERT INTO old_quote VALUES(?,?,?,?,?,?,?,?,?)", quote)
        db.execute("COMMIT")
    return path


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """Ten rows a page, so that a move of a few rows can be interrupted anywhere."""
    monkeypatch.setattr(kept_tables.read_pages, "__defaults__", (None, 10, ""))


def mark_to(folder):
    return MoveMark.begin(url_of(folder))


def copy_all(target, source, count=lambda name, rows: None):
    for table in list_kept_tables():
        target.copy(table, source, count)


def look(folder, sql):
    return read_place(terms_of(folder), lambda db: db.execute(sql).fetchall())


def facts(place):
    return read_place(place, read_table_facts)


def test_every_row_arrives_and_the_file_and_the_database_have_the_same_digests(path, tmp_path):
    counted = {}

    def count(name, rows):
        counted[name] = counted.get(name, 0) + rows

    with open_source(path) as source, open_target(terms_of(tmp_path)) as target:
        assert target.begin(mark_to(tmp_path), 0, simulated=False) == COPYING
        copy_all(target, source, count)
        assert target.read(read_table_facts) == facts(path)
        assert target.count_copied() == sum(counted.values()) == 3 + 2 * TOKENS + 400 + 2
    assert counted["transfer"] == 200


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("rows", [10, 30, 240, 400])
def test_a_move_that_was_interrupted_goes_on_behind_the_last_page_and_copies_no_row_twice(path, tmp_path, rows):
    mark, seen = mark_to(tmp_path), []

    def die(name, count):
        seen.append(count)
        if sum(seen) >= rows:
            raise Killed

    with open_source(path) as source:
        with open_target(terms_of(tmp_path)) as target:
            target.begin(mark, 0, simulated=False)
            with pytest.raises(Killed):
                copy_all(target, source, die)
        with open_target(terms_of(tmp_path)) as target:
            assert target.begin(mark, 0, simulated=False) == COPYING
            before = target.count_copied()
            assert before == sum(seen), "what was said to be copied is there"
            again = []
            copy_all(target, source, lambda name, count: again.append(count))
            assert sum(again) == target.count_copied() - before
            assert target.read(read_table_facts) == facts(path)


def test_numbers_go_on_behind_those_of_the_file_and_of_quotes_that_were_put_aside(path, tmp_path):
    with open_source(path) as source, open_target(terms_of(tmp_path)) as target:
        target.begin(mark_to(tmp_path), 0, simulated=False)
        copy_all(target, source)
        target.set_counters(5)
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        assert next_numbers(db, "ledger_number", "", "") == [1024, 1024]
        sql = "INSERT INTO receipt(id, owner, core, key, signature, at) VALUES('r2',?,?,'k',?,1) RETURNING seq"
        assert db.execute(sql, ("a" * 64, b"{}", bytes(64))).fetchone() == (42,)
        sql = """INSERT INTO purchase(memo_hash, address, amount, credits, state, created_at, expires_at)
          VALUES(?,?,1,1,'quoted',1,2) RETURNING id"""
        assert db.execute(sql, (bytes([1]) * 32, bytes(20))).fetchone() == (78,)
        assert db.execute("SELECT next FROM deposit_number").fetchone() == (13,)


def test_the_mark_of_deposit_addresses_counts_where_it_is_ahead_of_the_rows(path, tmp_path):
    with open_source(path) as source, open_target(terms_of(tmp_path)) as target:
        target.begin(mark_to(tmp_path), 0, simulated=False)
        copy_all(target, source)
        for _ in range(2):  # again, by a move that was killed right after it
            target.set_counters(640)
    assert look(tmp_path, "SELECT next FROM deposit_number") == [(640,)]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("INSERT INTO account VALUES(9,'token',1,0,0)", "account"),
        ("INSERT INTO published_key VALUES('receipts','k','{}')", "keys of instances"),
        ("INSERT INTO no_charge(seq, day, entry, at) VALUES(0,'2027-01-01','x',1)", "no_charge"),
    ],
)
def test_a_database_that_has_anything_is_left_alone(tmp_path, sql, what):
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        migrate_server(db)
        db.execute(sql)
    with open_target(terms_of(tmp_path)) as target, pytest.raises(MoveRefused, match=f"is not empty: it has {what}"):
        target.begin(mark_to(tmp_path), 0, simulated=False)
    assert look(tmp_path, "SELECT count(*) FROM ledger_move") == [(0,)]


def test_another_move_a_file_that_was_written_and_the_other_world_are_refused(tmp_path):
    mark = mark_to(tmp_path)
    with open_target(terms_of(tmp_path)) as target:
        target.begin(mark, 7, simulated=False)
        with pytest.raises(MoveRefused, match="has the ledger of another move"):
            target.begin(mark_to(tmp_path), 7, simulated=False)
        with pytest.raises(MoveRefused, match="the file was written since this move began"):
            target.begin(mark, 8, simulated=False)
    run_sql("UPDATE installation SET simulated = 1; DELETE FROM ledger_move", url_of(tmp_path))
    with open_target(terms_of(tmp_path)) as target, pytest.raises(OtherWorld):
        target.begin(mark, 7, simulated=False)


def test_one_process_moves_at_a_time(tmp_path):
    with open_target(terms_of(tmp_path)), pytest.raises(MoveRefused, match="another process"):
        with open_target(terms_of(tmp_path)):
            pass


def test_a_part_of_a_ledger_is_not_served_and_the_whole_is(tmp_path):
    mark = mark_to(tmp_path)
    with open_target(terms_of(tmp_path)) as target:
        assert target.read(is_new)
        target.begin(mark, 0, simulated=False)
        with pytest.raises(MoveUnfinished, match="run `toolserver db move` again"):
            target.read(require_whole)
        assert not target.read(is_new)
        target.finish()
        target.read(require_whole)
        assert target.begin(mark, 0, simulated=False) == COMPLETE


def test_a_server_that_is_not_there_is_a_failure_of_storage(tmp_path):
    with (
        pytest.raises(StorageFailed),
        open_target(PostgresTerms("postgresql://127.0.0.1:9/none", connect_s=1, work_s=1)),
    ):
        pass


def test_nobody_writes_to_a_file_while_it_is_read(path):
    with closing(connect(path, busy_ms=1)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    with open_source(path) as source, closing(connect(path, busy_ms=1)) as other:
        assert count_sealed(source) == 0
        with pytest.raises(DatabaseUnusable, match="locked"):
            other.execute("UPDATE account SET credits = 10 WHERE id = 4")
    with pytest.raises(StorageFailed, match="cannot be read"), open_source(path.with_name("none")):
        pass
