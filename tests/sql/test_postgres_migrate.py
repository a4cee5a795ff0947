"""Both engines have the same tables with the same columns, and a database of others is left alone."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from threading import Thread

import anyio
import anyio.to_thread
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.postgres import run_sql, terms_of, url_of
from tests.size import sized
from toolserver.clock import ManualClock
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.errors import DatabaseError, ForeignDatabase, MigrationChanged, NewerDatabase, TransactionLost
from toolserver.sql.migrate import Migration, migrate
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_group_commit import PostgresGroupCommit
from toolserver.sql.postgres_migrate import TURNS, migrate_server, server_migrations

pytestmark = pytest.mark.live
ONLY_FILE = {"row_seal", "sqlite_sequence"}
ONLY_SERVER = {
    *("installation", "deposit_number", "published_key", "mark"),  # what files of a data directory say
    *("ledger_move", "ledger_move_table"),  # how far a move has come
}
TYPES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea"}
SAME = (Migration(1, "first", "CREATE TABLE one(id bigint)"), Migration(2, "second", "CREATE TABLE two(id bigint)"))


@pytest.fixture
def server(tmp_path):
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        yield db


def columns_of_file():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {
            table: [(name, TYPES[kind], bool(needed or key)) for _, name, kind, needed, _, key in
                    db.execute(f"PRAGMA table_info({table})")]
            for table in tables
            if table not in ONLY_FILE
        }  # fmt: skip


def test_both_engines_have_the_same_columns_in_the_same_order(server):
    migrate_server(server)
    found = {}
    for table, column, kind, nullable in server.execute(
        """SELECT table_name::text, column_name::text, data_type::text, is_nullable::text
           FROM information_schema.columns WHERE table_schema = current_schema()
           ORDER BY table_name, ordinal_position"""
    ):
        found.setdefault(table, []).append((column, kind, nullable == "NO"))
    assert ONLY_SERVER <= found.keys()
    assert {table: found[table] for table in found if table not in ONLY_SERVER} == columns_of_file()


def test_both_engines_have_the_same_triggers_and_indexes(server):
    migrate_server(server)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        sql = "SELECT name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        expected = {name for (name,) in db.execute(sql)}
    found = {name for (name,) in server.execute("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal")}
    found |= {name for (name,) in server.execute("SELECT indexname::text FROM pg_indexes")}
    assert expected - found == set()


def test_text_is_compared_byte_by_byte_whatever_the_language_of_the_server(server):
    migrate_server(server)
    sql = """SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()
      AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'migration'"""
    assert server.execute(sql).fetchone() == (0,)


def test_instances_that_start_together_migrate_once(tmp_path):
    terms, failed = terms_of(tmp_path), []

    def start():
        try:
            with closing(PostgresConnection(terms)) as db:
                migrate_server(db)
        except Exception as failure:
            failed.append(failure)

    threads = [Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with closing(PostgresConnection(terms)) as db:
        assert db.execute("SELECT count(*) FROM migration").fetchone() == (len(server_migrations()),)


def test_a_database_of_another_kind_version_or_text_is_left_alone(server, tmp_path):
    migrate_server(server, SAME)
    with pytest.raises(NewerDatabase):
        migrate_server(server, SAME[:1])
    with pytest.raises(MigrationChanged):
        migrate_server(server, (SAME[0], SAME[1].__class__(2, "second", "CREATE TABLE other(id bigint)")))
    run_sql("CREATE TABLE theirs(id bigint)", url_of(tmp_path / "foreign"))
    with closing(PostgresConnection(terms_of(tmp_path / "foreign"))) as db, pytest.raises(ForeignDatabase):
        migrate_server(db)


def test_a_step_that_fails_leaves_nothing(server):
    with pytest.raises(DatabaseError):
        migrate_server(server, (*SAME, Migration(3, "wrong", "CREATE TABLE three(id bigint); SELECT nonsense")))
    assert server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").fetchone() == (0,)


class OftenLost(PostgresConnection):
    """A connection whose transaction the server ends in its second script, so many times."""

    lost, scripts = 0, 0

    def run_script(self, script):
        super().run_script(script)
        self.scripts += 1
        if self.scripts % 2 == 0 and self.lost:
            self.lost -= 1
            raise TransactionLost("40P01 deadlock detected")


def test_a_migration_that_a_sale_has_ended_is_run_again_from_its_first_step(tmp_path):
    with closing(OftenLost(terms_of(tmp_path))) as db:
        db.lost = TURNS - 1
        assert migrate_server(db, SAME, again_s=0) == 2
        assert db.execute("SELECT number FROM migration ORDER BY number").fetchall() == [(1,), (2,)]


def test_one_that_is_ended_again_and_again_says_so_and_leaves_nothing(tmp_path):
    with closing(OftenLost(terms_of(tmp_path))) as db:
        db.lost = TURNS
        with pytest.raises(TransactionLost):
            migrate_server(db, SAME, again_s=0)
        assert db.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").fetchone() == (0,)


def migrate_beside(terms, steps=None):
    """Migrate on a connection of its own, as another instance does."""
    with closing(PostgresConnection(terms)) as db:
        return migrate_server(db, steps)


async def test_an_instance_that_runs_sells_on_while_a_newer_one_migrates(tmp_path):
    known = server_migrations()
    newer = Migration(known[-1].number + 1, "a later version", "ALTER TABLE allowance ADD COLUMN later bigint;")
    terms, enough, sold = terms_of(tmp_path), anyio.Event(), []
    await anyio.to_thread.run_sync(migrate_beside, terms)
    store = PostgresGroupCommit(terms)
    store.start(asyncio.get_running_loop())
    running = SqlLedger(store, ManualClock(START))
    await running.mint(token(1), 10_000, cause="bought")

    async def sell():
        while not enough.is_set() or len(sold) < 5:
            call = f"c{len(sold)}"
            await running.reserve(call, token(1), 1, endpoint="/x", ttl_s=60)
            sold.append(await running.settle(call, no_charge=None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sell)
        assert await anyio.to_thread.run_sync(migrate_beside, terms, [*known, newer]) == newer.number
        enough.set()
    assert {settled.charged for settled in sold} == {1}
    assert await running.check() == []
    await store.close()


def test_a_database_whose_first_step_had_another_comment_is_one_of_ours(server):
    first, *later = server_migrations()
    migrate_server(server, [Migration(1, first.name, first.sql.replace("tests/sql/", "tests/storage/"))])
    assert migrate_server(server) == 1 + len(later)


IN_USE = (
    *SAME,
    Migration(3, "rows", "INSERT INTO one SELECT generate_series(1, 25);"),
    Migration(4, "more", "ALTER TABLE one ADD COLUMN twice bigint; ALTER TABLE two ADD COLUMN more bigint"),
    Migration(
        5,
        "index",
        """-- concurrently
        CREATE INDEX CONCURRENTLY IF NOT EXISTS one_by_id ON one(id);
        CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS two_by_id ON two(id);""",
    ),
    Migration(
        6,
        "backfill",
        """-- in batches
        UPDATE one SET twice = 2 * id WHERE id = ANY(ARRAY(SELECT id FROM one WHERE twice IS NULL LIMIT 10));""",
    ),
    Migration(7, "last", "CREATE TABLE three(id bigint)"),
)
INVALID = "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid::regclass::text LIKE '%_by_id'"
INDEXES = """SELECT indexrelid::regclass::text FROM pg_index
  WHERE indisvalid AND indexrelid IN (to_regclass('one_by_id'), to_regclass('two_by_id')) ORDER BY 1"""


def require_whole(db):
    assert [number for (number,) in db.execute("SELECT number FROM migration ORDER BY number")] == [1, 2, 3, 4, 5, 6, 7]
    assert db.execute("SELECT count(*), sum(twice - 2 * id) FROM one").fetchone() == (25, 0)
    assert db.execute(INVALID).fetchone() == (0,)
    assert [name.rpartition(".")[2] for (name,) in db.execute(INDEXES)] == ["one_by_id", "two_by_id"]


class Killed(BaseException):
    """Nothing is done after it."""


class Mortal(PostgresConnection):
    """A connection whose process dies before one of its statements."""

    left = 10**9

    def _drive(self, work):
        self.left -= 1
        if self.left < 0:
            work.close()
            raise Killed
        return super()._drive(work)


def migrate_until_killed(terms, left=10**9):
    """Migrate on a connection that dies after so many statements. Returns how many are left, below 0 if it died."""
    with closing(PostgresConnection(terms)) as db:
        migrate_server(db, IN_USE[:3])
    with closing(Mortal(terms)) as db:
        db.left = left
        with suppress(Killed):
            migrate_server(db, IN_USE, again_s=0)
        return db.left


def test_a_start_after_a_kill_at_any_statement_finishes_the_migration(tmp_path):
    number = 10**9 - migrate_until_killed(terms_of(tmp_path))
    for left in range(0, number, sized(3, fast=8, long=1)):
        terms = terms_of(tmp_path / str(left))
        assert migrate_until_killed(terms, left) < 0
        with closing(PostgresConnection(terms)) as db:
            assert migrate_server(db, IN_USE, again_s=0) == 7
            require_whole(db)


def test_an_index_that_a_killed_build_has_left_is_made_anew(server):
    migrate_server(server, IN_USE[:4])
    server.run_script("INSERT INTO two VALUES(1), (1)")
    with pytest.raises(DatabaseError, match="could not create unique index"):
        migrate_server(server, IN_USE, again_s=0)
    assert server.execute(INVALID).fetchone() == (1,)
    server.run_script("TRUNCATE two")
    migrate_server(server, IN_USE, again_s=0)
    require_whole(server)


def test_others_write_while_an_index_waits_for_them_and_while_a_step_waits_for_a_lock(server, tmp_path):
    terms = terms_of(tmp_path)
    migrate_server(server, IN_USE[:3])
    with closing(PostgresConnection(terms)) as older, closing(PostgresConnection(terms)) as writer:
        older.begin()
        older.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        older.execute("INSERT INTO two VALUES(7)")  # `ALTER TABLE two` and the build of its index wait for its end
        migrating = Thread(target=migrate_beside, args=(terms, IN_USE))
        migrating.start()
        writer.execute("SET lock_timeout = '5s'")
        for _ in range(30):
            writer.execute("INSERT INTO one VALUES(26)")
            writer.execute("INSERT INTO two VALUES(NULL)")
            writer.execute("SELECT pg_sleep(0.03)")
        assert migrating.is_alive()
        older.rollback()
        migrating.join()
        writer.execute("DELETE FROM one WHERE id = 26")
        require_whole(writer)


def test_a_concurrent_step_with_another_statement_is_refused(server):
    migrate_server(server, SAME)
    wrong = Migration(3, "wrong", "-- concurrently\nDELETE FROM one;")
    with pytest.raises(ValueError, match="CREATE INDEX CONCURRENTLY"):
        migrate_server(server, (*SAME, wrong))
