"""Every table of money on a server, rewritten by someone with the database and not the key: each row is named."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count

import anyio
import anyio.from_thread
import anyio.to_thread
import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.money.ledger.ledgers import token
from tests.postgres import run_sql, terms_of
from toolserver.clock import SystemClock
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.errors import RowsRewritten, StorageFailed
from toolserver.sql.high_water import HighWater
from toolserver.sql.kept_tables import list_kept_tables
from toolserver.sql.postgres import PostgresConnection, ServerAway
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.postgres_migrate import migrate_server
from toolserver.sql.row_seal import NOT_SEALED, TABLES, RowSeal, name_row, read_seals
from toolserver.sql.seal_marks import SERVER_MARK, read_mark
from toolserver.sql.sealed_server import NO_KEY, NOT_YET, SealedServer
from toolserver.sql.server_seal import find_rewritten_on_server, find_trigger_changes, merge_seals, seal_text

pytestmark = pytest.mark.live

KEY = b"k" * 32
NOT_OURS = ["the seal was not made with the key of this data directory"]
OF_SERVER = {"installation", "deposit_number", "published_key", "mark", "ledger_move", "ledger_move_table"}
VALUES = {"bigint": lambda n: n, "text": lambda n: f"text, ({n})", "bytea": lambda n: f"bytes {n}".encode()}
# Without the rules of the tables, which rows of a test do not keep. Triggers that note rows stay.
LOOSE = """DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND contype IN ('c', 'f') LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', each.t, each.conname);
  END LOOP;
  FOR each IN SELECT tgrelid::regclass AS t, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    WHERE NOT tgisinternal AND tgname NOT LIKE 'note_%' AND c.relnamespace = current_schema()::regnamespace LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', each.tgname, each.t);
  END LOOP; END $$"""
COLUMNS = """SELECT column_name::text, data_type::text FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position"""


def columns_of(db, table):
    return db.execute(COLUMNS, (table,)).fetchall()


def row_of(db, table, number):
    return [VALUES[kind](number + place) for place, (_, kind) in enumerate(columns_of(db, table))]


def key_of(table):
    (kept,) = (each for each in list_kept_tables() if each.name == table)
    return kept.key


def name_of(columns, table, row):
    names = [name for name, _ in columns]
    return f"{table} " + name_row([row[names.index(name)] for name in key_of(table)]).encode()[:25].decode()


def find(db):
    return [line for line in find_rewritten_on_server(db, KEY) if not line.startswith("trigger")]


def insert(db, table, row):
    db.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """A database with two rows in each table, sealed by the writer that added them."""
    terms = terms_of(tmp_path_factory.mktemp("sealed"), row_key=KEY)
    with closing(PostgresConnection(terms)) as db:
        migrate_server(db)
        db.run_script(LOOSE)
        SealedServer(terms).begin()
        db.transact(lambda: [insert(db, each, row_of(db, each, n)) for each in TABLES for n in (1000, 2000)])
        db.transact(lambda: find(db) == [] or pytest.fail("what we wrote is found"))
        yield db


@pytest.fixture
def open_db(db):
    """The same within a transaction of somebody else, which is rolled back."""
    db.begin()
    db.run_script("SET LOCAL toolserver.rows = ''")
    yield db
    db.rollback()


def test_every_table_is_sealed_or_named_with_the_reason_why_it_is_not(db):
    sql = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
    tables = {name for (name,) in db.execute(sql)}
    assert tables - OF_SERVER == {*TABLES, *NOT_SEALED} - {"row_seal", "sqlite_sequence"}


@pytest.mark.parametrize("table", TABLES)
def test_each_way_to_rewrite_a_row_is_named(open_db, table):
    db = open_db
    columns, keys = columns_of(db, table), key_of(table)
    first = db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys)} DESC LIMIT 1").fetchone()
    before, marks = name_of(columns, table, first), ", ".join("?" * len(keys))
    key = [first[[name for name, _ in columns].index(name)] for name in keys]
    for place, (name, kind) in enumerate(columns):
        after = list(first)
        after[place] = VALUES[kind](7)
        now = name_of(columns, table, after)
        db.execute("SAVEPOINT each")
        db.execute(f'UPDATE {table} SET "{name}"=? WHERE ({", ".join(keys)}) = ({marks})', (after[place], *key))
        assert find(db) == (
            [f"{before} was changed"] if now == before else [f"{now} was added", f"{before} was removed"]
        )
        db.execute("ROLLBACK TO each")
    db.execute("SAVEPOINT each")
    db.execute(f"DELETE FROM {table} WHERE ({', '.join(keys)}) = ({marks})", key)
    assert find(db) == [f"{before} was removed"]
    db.execute("ROLLBACK TO each")
    added = row_of(db, table, 3000)
    insert(db, table, added)
    assert find(db) == [f"{name_of(columns, table, added)} was added"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE writer_seal SET commits=commits+1",
        "UPDATE writer_seal SET sketch=decode(repeat('00', length(sketch)), 'hex') WHERE writer=0",
        "UPDATE writer_seal SET nonce=decode(repeat('00', 16), 'hex') WHERE writer<>0",
        "UPDATE writer_seal SET before=decode(repeat('11', 32), 'hex') WHERE writer<>0",
        "UPDATE writer_seal SET writer=writer+1 WHERE writer<>0",
    ],
)
def test_a_seal_that_was_changed_is_no_seal(open_db, damage):
    open_db.execute(damage)
    assert find(open_db) == NOT_OURS


def test_seals_that_were_deleted_are_missed(open_db):
    open_db.execute("DELETE FROM writer_seal WHERE writer<>0")
    assert len(find(open_db)) >= len(TABLES)
    open_db.execute("DELETE FROM writer_seal")
    assert find(open_db) == ["the seal is missing"]


def test_a_seal_of_another_key_is_not_ours(open_db):
    found = find_rewritten_on_server(open_db, b"x" * 32)
    assert found[0] == NOT_OURS[0]


def test_what_was_rolled_back_to_a_savepoint_is_not_sealed(db):
    def job():
        db.execute("DELETE FROM journal")
        db.execute("SAVEPOINT one")
        db.execute("DELETE FROM payment_review")
        db.execute("ROLLBACK TO one")
        insert(db, "journal", row_of(db, "journal", 5000))

    db.transact(job)
    db.transact(lambda: find(db) == [] or pytest.fail("the seal is wrong"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("(1,token,0,0,)", "1"),
        ("(17,token)", "17"),
        ('("a ""b"", \\\\c",1)', 'a "b", \\c'),
        ("(x)", "x"),
    ],
)
def test_the_key_is_read_from_the_text_of_a_row(text, name):
    assert seal_text("account", text).name == name


def test_bytes_are_named_by_their_digits():
    assert seal_text("packed_receipt", '(1,2,"\\\\x00ff","\\\\xaa",,)').name == "00ff"


QUOTED = st.text(st.sampled_from('a1,"\\x() '), max_size=6)


@given(st.lists(QUOTED | QUOTED.map("\\x".__add__), min_size=4, max_size=4))
def test_names_are_the_same_whatever_the_server_quotes_and_escapes(db, texts):
    """Of a table whose key is its first column, of one whose key is its third, and of one with a key of two columns."""
    text = db.execute(f"SELECT ROW({', '.join(['CAST(? AS text)'] * 4)})::text", texts).fetchone()[0]
    shown = [each.removeprefix("\\x") for each in texts]
    assert seal_text("account", text).name == shown[0]
    assert seal_text("packed_receipt", text).name == shown[2]
    assert seal_text("log_node", text).name == f"{shown[0]} {shown[1]}"


def test_columns_that_a_migration_adds_empty_change_no_row(db):
    db.begin()
    try:
        db.run_script("ALTER TABLE purchase ADD COLUMN more text")
        assert find(db) == []
    finally:
        db.rollback()


# With the rules of the tables, through the stores of a service.


@pytest.fixture
def terms(tmp_path):
    return terms_of(tmp_path, row_key=KEY, data_dir=tmp_path)


async def sell(store, count, start=1):
    ledger = SqlLedger(store, SystemClock())
    await ledger.mint(token(start), 1000, cause=f"cause {start}")
    for number in range(count):
        await ledger.charge(f"call {start} {number}", token(start), 2, endpoint="/x")
    return ledger


async def test_a_new_database_is_sealed_and_two_instances_that_write_at_once_leave_true_seals(terms):
    async with open_postgres(terms) as one, open_postgres(terms) as other, anyio.create_task_group() as tasks:
        assert await one.describe_sealing() is None
        await SqlLedger(one, SystemClock()).mint(token(9), 1000, cause="both")
        for number, store in ((1, one), (2, other)):
            tasks.start_soon(sell, store, 20, number)
            for each in range(20):
                ledger = SqlLedger(store, SystemClock())
                tasks.start_soon(lambda ledger=ledger, name=f"{number} {each}": charge_both(ledger, name))
    async with open_postgres(terms) as store:
        assert await store.find_rewritten() == []
        await store.check_rows_at_start()
        writers = await store.read(lambda db: [seal.writer for seal in read_seals(db)])
        assert len(writers) == 3
        run_sql("UPDATE account SET credits=credits+5 WHERE id=(SELECT max(id) FROM account)", terms.url)
        with pytest.raises(RowsRewritten, match=r"rewritten: account \d+ was changed"):
            await store.check_rows_at_start()
        with pytest.raises(StorageFailed, match="was rewritten"):
            await store.read(lambda db: None)
        with pytest.raises(StorageFailed, match="was rewritten"):
            await store.probe()


async def charge_both(ledger, name):
    await ledger.charge(f"both {name}", token(9), 1, endpoint="/x")


async def test_a_database_of_before_is_sealed_when_a_person_accepts_its_rows(terms):
    async with open_postgres(replace(terms, row_key=None)) as store:
        await sell(store, 3)
        assert await store.describe_sealing() == NO_KEY
    async with open_postgres(terms) as store:
        assert await store.describe_sealing() == NOT_YET
        assert await store.find_rewritten() == []
        await sell(store, 3, start=2)
        await store.check_rows_at_start()
        await store.accept_rows()
        assert await store.describe_sealing() is None
        await sell(store, 3, start=3)
        assert await store.find_rewritten() == []
    async with open_postgres(replace(terms, row_key=None)) as store:  # an instance of the version before
        await sell(store, 1, start=4)
    async with open_postgres(terms) as store:
        assert [line for line in await store.find_rewritten() if line.endswith("was added")]
        await store.accept_rows()
        assert await store.find_rewritten() == []


async def test_accepting_rows_while_others_sell_leaves_a_true_seal(terms):
    async with open_postgres(terms) as store:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sell, store, 60)
            for _ in range(3):
                await store.accept_rows()
        assert await store.find_rewritten() == []


async def test_a_restored_older_database_is_noticed_at_the_start_with_what_it_lacks(terms):
    async with open_postgres(terms) as store:
        await sell(store, 2)
        older = await store.read(copy_rows)
        await sell(store, 3, start=2)
        await store.check_rows()
    mark = read_mark(HighWater(terms.data_dir), SERVER_MARK)
    await anyio.to_thread.run_sync(restore_rows, terms, older)
    async with open_postgres(terms) as store:
        with pytest.raises(
            RowsRewritten, match=rf"an older copy of the database: 4 transactions are missing of {mark.commits},"
        ):
            await store.check_rows_at_start()
    async with open_postgres(terms) as store:
        assert len(await store.find_rewritten()) == 1
        await store.accept_rows()
        assert await store.find_rewritten() == []
        await store.check_rows_at_start()


@pytest.mark.parametrize("limit", [10, -1], ids=["every row", "the seals alone"])
async def test_what_is_sold_and_noted_during_a_check_does_not_make_the_database_an_older_copy(
    terms, monkeypatch, limit
):
    read, sales = HighWater.read_own, count(1)

    def read_after_a_sale(marks, name):
        anyio.from_thread.run(partial(ledger.charge, endpoint="/x"), f"sale {next(sales)}", token(1), 1)
        anyio.from_thread.run(store.check_rows)
        return read(marks, name)

    monkeypatch.setattr("toolserver.sql.sealed_server.SMALL", limit)
    async with open_postgres(terms) as store:
        ledger = await sell(store, 1)
        monkeypatch.setattr(HighWater, "read_own", read_after_a_sale)
        await store.check_rows_at_start()
        assert await store.find_rewritten() == []
    assert next(sales) > 2


def copy_rows(db):
    """Everything in the tables that are sealed, and the seals, as a backup has it."""
    return {each: db.execute(f"SELECT * FROM {each}").fetchall() for each in (*TABLES, "writer_seal")}


def restore_rows(terms, rows):
    with closing(PostgresConnection(replace(terms, row_key=None))) as db:
        db.connect()
        db.run_script("SET session_replication_role = replica")
        db.run_script("; ".join(f"DELETE FROM {each}" for each in rows))
        for table, each in rows.items():
            for row in each:
                insert(db, table, row)


async def test_an_instance_notices_that_the_database_became_an_older_one_while_it_ran(terms):
    async with open_postgres(terms) as store:
        ledger = await sell(store, 2)
        older = await store.read(copy_rows)
        await ledger.charge("call later", token(1), 2, endpoint="/x")
        await anyio.to_thread.run_sync(restore_rows, terms, older)
        with pytest.raises(Exception, match="temporarily unavailable"):
            await ledger.charge("call after", token(1), 2, endpoint="/x")


async def test_seals_of_writers_that_are_gone_become_one(terms, monkeypatch):
    for number in range(3):
        async with open_postgres(terms) as store:
            await sell(store, 2, start=number + 1)
    monkeypatch.setattr("toolserver.sql.server_seal.GONE_MS", -60_000)
    async with open_postgres(terms) as store:
        before = await store.read(lambda db: sum(seal.commits for seal in read_seals(db)))
        await store.check_rows()
        (base,) = await store.read(read_seals)
        assert (base.writer, base.commits) == (0, before)
        ledger = await sell(store, 1, start=7)
        await store.check_rows()
        await ledger.charge("after its seal was merged", token(7), 2, endpoint="/x")
        assert await store.find_rewritten() == []


async def test_a_commit_whose_answer_was_lost_is_sealed_once(terms, monkeypatch):
    async with open_postgres(terms) as store:
        await sell(store, 1)
        commit, lost = PostgresConnection.commit, []

        def commit_twice(self):
            if not lost:
                lost.append(1)
                self.rollback()
                raise ServerAway("lost")
            commit(self)

        monkeypatch.setattr(PostgresConnection, "commit", commit_twice)
        await sell(store, 2, start=2)
        assert lost
        assert await store.find_rewritten() == []


@pytest.fixture
def sent(monkeypatch):
    """The statements that all connections send to the server, in their order."""
    statements = []

    def note(send):
        def noted(self, sql, *values, **named):
            statements.append(sql)
            return send(self, sql, *values, **named)

        return noted

    monkeypatch.setattr(asyncpg.Connection, "execute", note(asyncpg.Connection.execute))
    monkeypatch.setattr(asyncpg.Connection, "fetch", note(asyncpg.Connection.fetch))
    return statements


async def test_the_seal_is_sent_together_with_the_commit_even_after_a_transaction_that_was_rolled_back(terms, sent):
    def fail(db):
        db.execute("UPDATE account SET credits=credits+1 WHERE id>3")
        raise OSError("not written after all")

    async with open_postgres(terms) as store:
        await sell(store, 2)
        with pytest.raises(OSError, match="not written"):
            await store.alone(fail)
        sent.clear()
        await sell(store, 1, start=2)  # two transactions
        sealing = [sql for sql in sent if "writer_seal" in sql]
        assert len(sealing) == 2
        assert all(sql.startswith("WITH") and sql.endswith("; COMMIT") for sql in sealing)
        assert await store.find_rewritten() == []


async def test_a_group_is_run_again_once_if_the_seal_of_its_writer_was_merged_meanwhile(terms, monkeypatch):
    async with open_postgres(terms) as store:
        ledger = await sell(store, 2)
        monkeypatch.setattr("toolserver.sql.server_seal.GONE_MS", -60_000)
        await store.check_rows()
        monkeypatch.undo()
        assert len(await store.read(read_seals)) == 1
        before = store.measure().retries
        await ledger.charge("call after", token(1), 2, endpoint="/x")
        await ledger.charge("call later", token(1), 2, endpoint="/x")
        assert store.measure().retries - before == 1
        assert await ledger.balance(token(1)) == 1000 - 4 * 2
        assert len(await store.read(read_seals)) == 2
        assert await store.find_rewritten() == []


def run_here(terms, script):
    with closing(PostgresConnection(replace(terms, row_key=None))) as db:
        db.connect()
        db.run_script(script)


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (
            "DROP TRIGGER transfer_is_never_changed ON transfer",
            "trigger transfer_is_never_changed of transfer is missing",
        ),
        ("DROP TRIGGER note_added_rows ON token", "trigger note_added_rows of token is missing"),
        ("ALTER TABLE refund DISABLE TRIGGER note_changed_rows", "trigger note_changed_rows of refund is off"),
        (
            "CREATE TRIGGER gift AFTER INSERT ON account FOR EACH ROW EXECUTE FUNCTION refuse_change('x')",
            "trigger gift of account was added",
        ),
        (
            "CREATE OR REPLACE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
            "function note_rows was changed",
        ),
    ],
)
async def test_triggers_that_were_taken_away_or_changed_are_found(terms, script, found):
    async with open_postgres(terms) as store:
        assert await store.apart(find_trigger_changes) == []
        await anyio.to_thread.run_sync(run_here, terms, script)
        assert await store.find_rewritten() == [found]


def test_merging_leaves_seals_of_others_for_the_check_to_find(db):
    db.begin()
    try:
        db.execute("UPDATE writer_seal SET head=decode(repeat('00', 32), 'hex') WHERE writer<>0")
        db.execute("UPDATE writer_seal SET at=0 WHERE writer<>0")
        assert merge_seals(db, RowSeal(KEY)) == 0
    finally:
        db.rollback()
