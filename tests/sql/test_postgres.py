"""A connection to PostgreSQL has the shape of SQLite's: the same rows, counts and errors."""

import asyncio
import gc
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.postgres import terms_of, url_of
from toolserver.sql import postgres as module
from toolserver.sql.errors import ConstraintViolated, DatabaseError, TransactionLost
from toolserver.sql.postgres import (
    PostgresConnection,
    PostgresMissing,
    PostgresTerms,
    ServerAway,
    load_driver,
)

live = pytest.mark.live


@pytest.fixture
def db(tmp_path):
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        db.execute("CREATE TABLE t(id bigint PRIMARY KEY, word text, data bytea CHECK (length(data) < 4))")
        yield db


@live
def test_rows_counts_and_types_are_those_of_sqlite(db):
    assert db.execute("INSERT INTO t VALUES(?,?,?), (?,?,?)", (1, "a", b"\0x", 2, None, None)).rowcount == 2
    assert db.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, "a", b"\0x"), (2, None, None)]
    assert list(db.execute("SELECT id FROM t WHERE id > :least", {"least": 1})) == [(2,)]
    assert db.execute("SELECT 1 FROM t WHERE id = ?", (9,)).fetchone() is None
    assert db.execute("UPDATE t SET word = ? WHERE id > ?", ("b", 0)).rowcount == 2
    assert db.execute("DELETE FROM t WHERE id = ? RETURNING word", (1,)).fetchall() == [("b",)]
    sums = db.execute("SELECT sum(id), count(*), avg(id) + 0.5 FROM t").fetchone()
    assert sums == (2, 1, 2.5)
    assert [type(value) for value in sums] == [int, int, float]


@live
def test_errors_have_our_names_and_show_no_row(db):
    db.execute("INSERT INTO t VALUES(1, 'secret', NULL)")
    with pytest.raises(ConstraintViolated) as twice:
        db.execute("INSERT INTO t VALUES(1, 'secret', NULL)")
    with pytest.raises(ConstraintViolated) as checked:
        db.execute("INSERT INTO t VALUES(2, 'secret', ?)", (b"long",))
    assert "secret" not in f"{twice.value} {checked.value}"
    for sql, parameters in (("SELECT nonsense", ()), ("SELECT 1 + ?", ("text",)), ("SELECT ?", ())):
        with pytest.raises(DatabaseError):
            db.execute(sql, parameters)


@live
def test_what_takes_longer_than_its_time_is_cut(db):
    db.limit(time.monotonic() + 0.2)
    with pytest.raises(ServerAway):
        db.execute("SELECT pg_sleep(30)")
    db.limit(float("inf"))
    assert db.execute("SELECT 1").fetchone() == (1,)


class CutConnection:
    """The driver's connection, cut between two of its steps: its protocol is gone, and it trips over that."""

    is_cut = False

    def __init__(self, *, cut):
        self._cut = cut

    def is_closed(self):
        return self.is_cut

    def terminate(self):
        self.is_cut = True

    async def fetch(self, *given):
        self.is_cut = self._cut
        raise AttributeError("'NoneType' object has no attribute 'bind_execute'")


@live
@pytest.mark.parametrize(
    ("cut", "error", "said"),
    [(True, ServerAway, "the connection was lost between two steps"), (False, DatabaseError, "bind_execute")],
)
def test_a_driver_that_trips_over_a_connection_that_was_cut_has_lost_the_server(db, cut, error, said):
    db.drop()
    db._raw = CutConnection(cut=cut)
    with pytest.raises(error, match=said):
        db.execute("SELECT 1")
    db.drop()
    assert db.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(("error", "lines"), [(ConnectionError("unexpected"), 0), (KeyError("a bug"), 1)])
def test_a_lost_connection_that_the_driver_no_longer_waits_for_is_no_second_line_of_the_log(error, lines, caplog):
    db = PostgresConnection(PostgresTerms("postgresql://127.0.0.1:1/none"))
    lost = db._loop.create_future()
    lost.set_exception(error)
    del lost
    gc.collect()
    db.close()
    assert len(caplog.records) == lines


def lose(db):
    """Let the connection be lost between two statements, as the driver notices it on its own."""
    db._raw.terminate()
    db._loop.run_until_complete(asyncio.sleep(0))
    assert db._raw.is_closed()


@live
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_transaction_that_lost_its_connection_does_not_go_on_over_another_one(db, ends):
    db.begin()
    db.execute("INSERT INTO t(id) VALUES(1)")
    lose(db)
    for use in (
        lambda: db.execute("INSERT INTO t(id) VALUES(2)"),
        lambda: db.execute("SELECT 1"),
        lambda: db.copy_rows("t", ["id"], [(3,)]),
        lambda: db.run_script("INSERT INTO t(id) VALUES(4)"),
    ):
        with pytest.raises(ServerAway):
            use()
    if ends == "rollback":
        db.rollback()
    else:
        with pytest.raises(ServerAway):
            db.commit()
    assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
    db.begin()
    db.execute("INSERT INTO t(id) VALUES(5)")
    db.commit()
    assert db.execute("SELECT id FROM t").fetchall() == [(5,)]


@live
def test_a_statement_that_finds_its_connection_lost_ends_the_transaction_too(db):
    db.begin()
    db.execute("INSERT INTO t(id) VALUES(1)")
    with pytest.raises(ServerAway):
        db.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(ServerAway):
        db.execute("INSERT INTO t(id) VALUES(2)")
    db.rollback()
    assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)


@live
def test_another_transaction_in_the_way_is_no_fault_of_this_one(tmp_path, db):
    db.execute("INSERT INTO t VALUES(1, 'a', NULL)")
    with closing(PostgresConnection(terms_of(tmp_path, work_s=0.2))) as other:
        db.begin()
        db.execute("UPDATE t SET word='b'")
        other.begin()
        with pytest.raises(TransactionLost):
            other.execute("UPDATE t SET word='c'")
        other.rollback()
        db.commit()


@live
@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_the_server_undoes_for_the_sake_of_others_may_be_run_again(db, state):
    with pytest.raises(TransactionLost, match=state):
        db.execute(f"DO $$ BEGIN RAISE EXCEPTION SQLSTATE '{state}'; END $$")
    db.rollback()


@live
def test_an_instance_that_vanishes_frees_its_locks_and_waits_for_nobody(db):
    terms = dict(db.execute("SELECT name::text, setting::text FROM pg_settings").fetchall())
    assert int(terms["idle_in_transaction_session_timeout"]) == module.IDLE_TRANSACTION_S * 1000
    assert (int(terms["statement_timeout"]), int(terms["lock_timeout"])) == (20_000, 5_000)
    assert terms["synchronous_commit"] == "on"


@live
def test_where_the_pooler_keeps_no_session_each_transaction_sets_its_own_terms(tmp_path):
    with closing(PostgresConnection(terms_of(tmp_path, cached=0))) as db:
        db.begin()
        inside = db.execute("SELECT current_setting('lock_timeout')").fetchone()
        db.commit()
        assert inside == ("5s",)
        assert db.execute("SELECT current_setting('lock_timeout')").fetchone() == ("0",)


def test_terms_never_show_the_password():
    assert "hunter2" not in repr(PostgresTerms("postgresql://me:hunter2@host/db"))


def test_without_the_driver_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(PostgresMissing, match=r"agent-toolserver\[postgres\]"):
        load_driver()


def test_nothing_loads_the_driver_before_it_is_needed():
    code = "import sys, toolserver.sql.postgres_group_commit; sys.exit('asyncpg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@live
def test_a_url_of_a_test_is_a_schema_of_its_own(tmp_path):
    assert url_of(tmp_path / "a") != url_of(tmp_path / "b")


@live
def test_statements_of_callers_are_planned_with_indexes_however_small_their_tables_are_at_first(db):
    """A plan that was made over empty tables is kept while they grow: it once made charging eleven times slower."""
    found = dict(db.execute("SELECT name::text, setting::text FROM pg_settings WHERE name LIKE 'enable_%'").fetchall())
    assert [found[f"enable_{way}"] for way in ("seqscan", "hashjoin", "mergejoin", "indexscan")] == ["off"] * 3 + ["on"]
