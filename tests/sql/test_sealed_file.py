"""A ledger file that was rewritten is found at the next start and on demand, and nothing is written to it any more."""

import json
import shutil
import sqlite3
from contextlib import closing

import anyio
import anyio.from_thread
import pytest

from tests.sql.old_seal import seal_as_before
from toolserver.core.models import iso_of_ms
from toolserver.sql import migrate as migrations_module
from toolserver.sql.errors import RowsRewritten, StorageFailed
from toolserver.sql.high_water import HighWater
from toolserver.sql.migrate import migrate, migrations
from toolserver.sql.row_seal import KEY, TABLES, read_key
from toolserver.sql.seal_marks import MARK, note_seals, read_mark
from toolserver.sql.sealed_file import find_schema_changes, is_small, note_restored, read_old_seal
from toolserver.sql.sqlite import connect, durable

BEFORE_SEAL = 11  # migrations
BEFORE_WRITERS = 30


def buy(account, credits=100):
    def job(db):
        db.execute("INSERT INTO account(id, kind, credits) VALUES(?, 'token', ?)", (account, credits))
        token = f"{account:064}"
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES(?, ?, ?, 0)", (token, account, token[-20:]))

    return job


@pytest.fixture
async def path(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    async with durable(path) as file:
        await file.alone(buy(4))
    return path


def rewrite(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def take_back(path, version):
    """Make the file one of an earlier version, with the rows it has: whatever later migrations made is gone."""

    def schema(db):
        sql = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        return {(kind, name): text for kind, name, text in db.execute(sql)}

    with closing(sqlite3.connect(path, isolation_level=None)) as db, closing(sqlite3.connect(":memory:")) as old:
        migrate(old, migrations()[:version])
        now, then = schema(db), schema(old)
        for kind, name in sorted((key for key in now if now[key] != then.get(key)), reverse=True):  # triggers first
            if kind != "table" or (kind, name) not in then:
                db.execute(f"DROP {kind} IF EXISTS {name}")
        for kind, name in then:
            for column in _columns(db, name) - _columns(old, name) if kind == "table" else ():
                db.execute(f"ALTER TABLE {name} DROP COLUMN {column}")
        for key in sorted(then.keys() - schema(db).keys()):
            db.execute(then[key])
        db.execute("DELETE FROM migration WHERE number>?", (version,))


def _columns(db, table):
    return {name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))}


async def find(path):
    async with durable(path) as file:
        return await file.apart(file.rows.find_rewritten)


async def test_a_file_that_only_we_wrote_has_nothing_to_show(path):
    assert await find(path) == []
    async with durable(path) as file:
        await file.check_rows_at_start()
        await file.alone(buy(5))
    assert await find(path) == []


async def test_two_processes_of_ours_that_write_in_turn_leave_a_true_seal(path):
    async with durable(path) as one, durable(path) as other:
        for number in range(5, 15):
            await (one if number % 2 else other).alone(buy(number))
    assert await find(path) == []


async def test_credits_that_were_added_by_hand_are_found_and_nothing_is_written_any_more(path):
    rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
    async with durable(path) as file:
        with pytest.raises(RowsRewritten, match="was rewritten: account 4 was changed"):
            await file.check_rows_at_start()
        with pytest.raises(StorageFailed, match="was rewritten"):
            await file.alone(buy(5))
        with pytest.raises(StorageFailed, match="was rewritten"):
            await file.read(is_small)


async def test_rows_that_are_rewritten_while_the_service_runs_are_found_at_the_next_look(path):
    async with durable(path) as file:
        await file.check_rows()
        rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
        with pytest.raises(RowsRewritten):
            await file.check_rows()


async def test_rows_are_not_read_again_while_nobody_else_wrote(path, monkeypatch):
    async with durable(path) as file:
        await file.check_rows()
        await file.alone(buy(5))
        monkeypatch.setattr(file.rows, "check", lambda: pytest.fail("read again"))
        await file.check_rows()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DROP TRIGGER transfer_is_never_changed", "trigger transfer_is_never_changed is missing"),
        ("DROP INDEX transfer_paid_once", "index transfer_paid_once is missing"),
        ("CREATE TRIGGER gift AFTER INSERT ON account BEGIN SELECT 1; END", "trigger gift was added"),
        ("ALTER TABLE allowance ADD COLUMN more TEXT", "table allowance was changed"),
    ],
)
async def test_rules_of_the_file_that_were_taken_away_or_added_are_found(path, statement, found):
    rewrite(path, statement)
    assert found in await find(path)


async def test_a_seal_that_was_removed_is_not_made_again(path):
    rewrite(path, "DELETE FROM writer_seal")
    assert await find(path) == ["the seal is missing"]
    take_back(path, BEFORE_SEAL)
    assert "the seal is missing" in await find(path)


async def test_a_file_of_before_the_seal_is_sealed_as_it_is(path):
    take_back(path, BEFORE_SEAL)
    shutil.rmtree((path.parent / KEY).parent)
    assert await find(path) == []


async def test_a_file_whose_key_was_made_but_that_was_never_sealed_is_sealed_at_the_next_start(path):
    """An earlier version of this software left it so, when it was killed during its first start on an old file."""
    rewrite(path, "DELETE FROM writer_seal")
    HighWater(path.parent).path.unlink()
    assert await find(path) == []


async def test_a_file_counts_as_sealed_from_its_first_start_on_even_if_nobody_closed_it(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    async with durable(path) as file:
        await file.alone(buy(4))
        assert read_mark(HighWater(path.parent)).commits == 1  # written at the start, not at the end
        rewrite(path, "DELETE FROM writer_seal")
        async with durable(path) as other:
            assert await other.apart(other.rows.find_rewritten) == ["the seal is missing"]


OLDER = 12  # a version that was sealed, of fewer tables


async def make_older(path, version=OLDER):
    """A file as the version before sweeps, or another one, left it: sealed in the old way."""
    with closing(connect(path)) as db:
        migrate(db, migrations()[:version])
        buy(4)(db)
        seal_as_before(db, read_key(path.parent / KEY), counter=7)
    HighWater(path.parent).raise_to(MARK, 7)


@pytest.fixture
async def older(tmp_path):
    path = tmp_path / "older.sqlite3"
    await make_older(path)
    return path


async def test_a_file_of_fewer_tables_is_checked_by_them_and_then_migrated(older):
    assert await find(older) == []
    with closing(sqlite3.connect(older)) as db:
        assert db.execute("SELECT max(number) FROM migration").fetchone()[0] == len(migrations())


async def test_a_file_of_fewer_tables_that_was_rewritten_is_not_migrated(older):
    rewrite(older, "UPDATE account SET credits=1000 WHERE id=4")
    with pytest.raises(RowsRewritten, match="account"):
        await find(older)


async def test_an_old_seal_is_checked_once_and_the_new_one_goes_on_from_it(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    await make_older(path, BEFORE_WRITERS)
    assert await find(path) == []
    assert read_mark(HighWater(tmp_path)).commits == 8
    with closing(sqlite3.connect(path)) as db:
        assert read_old_seal(db).counter == 7  # as the version before left it
    rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
    assert await find(path) == ["account 4 was changed"]


@pytest.mark.parametrize(
    "statement", ["UPDATE row_seal SET counter=9", "UPDATE row_seal SET sums=zeroblob(length(sums))"]
)
async def test_an_old_seal_that_was_changed_is_not_replaced_by_a_new_one(tmp_path, statement):
    path = tmp_path / "ledger.sqlite3"
    await make_older(path, BEFORE_WRITERS)
    rewrite(path, statement)
    with pytest.raises(RowsRewritten, match="not made with the key"):
        await find(path)


async def test_an_older_copy_with_an_old_seal_is_known_as_one(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    await make_older(path, BEFORE_WRITERS)
    HighWater(tmp_path).raise_to(MARK, 9)
    with pytest.raises(RowsRewritten, match=r"an older copy of the file: 2 transactions are missing of 9[;.]"):
        await find(path)


async def test_a_large_file_is_not_read_at_the_start_but_an_older_copy_is_still_noticed(path, monkeypatch):
    shutil.copy(path, path.with_name("yesterday"))
    async with durable(path) as file:
        await file.alone(buy(5))
    shutil.copy(path.with_name("yesterday"), path)
    monkeypatch.setattr("toolserver.sql.sealed_file.SMALL", -1)
    async with durable(path) as file:
        monkeypatch.setattr(file.rows, "check", lambda: pytest.fail("every row was read"))
        with pytest.raises(RowsRewritten, match="an older copy of the file"):
            await file.check_rows_at_start()
        with pytest.raises(StorageFailed, match="an older copy of the file"):
            await file.alone(buy(5))


async def test_what_is_sold_and_noted_during_a_check_does_not_make_the_file_an_older_copy(path, monkeypatch):
    read, numbers = HighWater.read_own, iter((5, 6, 7))

    def read_after_a_sale(marks, name):
        anyio.from_thread.run(file.alone, buy(next(numbers)))
        file.rows.note_progress()
        return read(marks, name)

    async with durable(path) as file:
        monkeypatch.setattr(HighWater, "read_own", read_after_a_sale)
        assert await file.find_rewritten() == []
    assert next(numbers) == 6


async def test_a_copy_that_went_on_by_itself_is_not_the_same_history(path):
    shutil.copy(path, path.with_name("yesterday"))
    async with durable(path) as file:
        await file.alone(buy(5))
    mark = read_mark(HighWater(path.parent))
    shutil.copy(path.with_name("yesterday"), path)
    note_restored(path)
    async with durable(path) as file:
        await file.alone(buy(6))
    note_seals(HighWater(path.parent), mark, lower=True)
    assert await find(path) == ["an older copy of the file: the transactions of writer 0 differ"]


async def test_a_file_that_was_rewritten_is_not_migrated(path, monkeypatch):
    rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
    steps = migrations()
    more = (*steps, migrations_module.Migration(len(steps) + 1, "more", "CREATE TABLE more(a INTEGER) STRICT;\n"))
    for module in ("migrate", "sealed_file"):
        monkeypatch.setattr(f"toolserver.sql.{module}.migrations", lambda *_: more)
    with pytest.raises(RowsRewritten, match="account"):
        async with durable(path):
            pass


async def test_a_file_that_was_migrated_is_sealed_anew(path, monkeypatch):
    steps, sql = migrations(), "UPDATE account SET credits=credits+1 WHERE id=4;\n"
    more = (*steps, migrations_module.Migration(len(steps) + 1, "more", sql))
    for module in ("migrate", "sealed_file"):
        monkeypatch.setattr(f"toolserver.sql.{module}.migrations", lambda *_: more)
    assert await find(path) == []


@pytest.mark.parametrize("own", [True, False])
async def test_a_migration_may_add_a_table_of_money_to_a_file_with_a_true_seal(path, monkeypatch, own):
    if not own:
        rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
    steps = migrations()
    sql = "CREATE TABLE refund_of_a_test(id INTEGER PRIMARY KEY) STRICT;\n"
    more = (*steps, migrations_module.Migration(len(steps) + 1, "more", sql))
    for module in ("migrate", "sealed_file"):
        monkeypatch.setattr(f"toolserver.sql.{module}.migrations", lambda *_: more)
    for module in ("row_seal", "sealed_file"):
        monkeypatch.setattr(f"toolserver.sql.{module}.TABLES", (*TABLES, "refund_of_a_test"))
    if not own:
        with pytest.raises(RowsRewritten, match="account"):
            await find(path)
        return
    assert await find(path) == []
    rewrite(path, "INSERT INTO refund_of_a_test VALUES(1)")
    assert await find(path) == ["refund_of_a_test 1 was added"]


async def test_an_older_copy_of_the_file_is_known_as_one_until_it_counts_as_restored(path):
    shutil.copy(path, path.with_name("yesterday"))
    async with durable(path) as file:
        await file.alone(buy(5))
    shutil.copy(path.with_name("yesterday"), path)
    mark = read_mark(HighWater(path.parent))
    note_restored(path)
    mark_of_copy = read_mark(HighWater(path.parent))
    note_seals(HighWater(path.parent), mark)
    (lost,) = await find(path)
    since, until = iso_of_ms(mark_of_copy.at), iso_of_ms(mark.at)
    assert lost == (
        f"an older copy of the file: 1 transaction is missing of {mark.commits}, those after {since}"
        f" (the last one was at {until})"
    )
    note_restored(path)
    assert await find(path) == []


async def test_what_a_person_vouched_for_is_true_from_then_on(path):
    rewrite(path, "UPDATE account SET credits=1000 WHERE id=4")
    async with durable(path) as file:
        await file.alone(file.rows.accept)
        await file.check_rows()
    assert await find(path) == []


async def test_how_far_the_file_has_come_is_written_down_outside_when_it_is_closed(path):
    before = read_mark(HighWater(path.parent))
    async with durable(path) as file:
        await file.alone(buy(5))
    after = read_mark(HighWater(path.parent))
    assert after.commits == before.commits + 1
    assert after.at >= before.at
    assert after.writers["0"][1] != before.writers["0"][1]


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"k": "AAAA"}), '{"k": 1}'])
async def test_a_broken_key_is_named(path, text):
    (path.parent / KEY).write_text(text)
    with pytest.raises(RowsRewritten, match="is not the key of a seal"):
        async with durable(path):
            pass


def test_each_version_is_compared_with_its_own_tables_however_often():
    for version in (BEFORE_SEAL, len(migrations()), BEFORE_SEAL):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            migrate(db, migrations()[:version])
            assert find_schema_changes(db) == []
            db.execute("DROP TABLE tx_credit")
            assert "table tx_credit is missing" in find_schema_changes(db)
