"""Check that the fast files of tests equal those that a service makes."""

import sqlite3
import ssl
from contextlib import closing

import pytest

from tests.quick_files import MEMORY, has_memory, migrate_copied
from toolserver.money.ledger.store import FILE
from toolserver.sql.migrate import migrate, migrations
from toolserver.sql.sqlite import durable, in_memory


def schema_of(db):
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


def test_a_copied_ledger_is_a_migrated_one(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a")) as slow, closing(sqlite3.connect(tmp_path / "b")) as quick:
        assert migrate(slow) == migrate_copied(quick) == len(migrations())
        assert schema_of(slow) == schema_of(quick) != []
        for pragma in ("application_id", "user_version", "page_size", "auto_vacuum", "encoding", "journal_mode"):
            assert slow.execute(f"PRAGMA {pragma}").fetchall() == quick.execute(f"PRAGMA {pragma}").fetchall()
        applied = "SELECT number, name, checksum FROM migration"
        assert slow.execute(applied).fetchall() == quick.execute(applied).fetchall()


def test_a_ledger_that_is_not_new_is_migrated_as_ever():
    with closing(sqlite3.connect(":memory:")) as db:
        migrate(db, migrations()[:3])
        db.execute("CREATE TABLE mine(x)")
        assert migrate_copied(db) == len(migrations())
        assert db.execute("SELECT 1 FROM sqlite_master WHERE name='mine'").fetchone()


def test_a_ledger_keeps_its_way_of_journalling(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        migrate_copied(db)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_what_a_service_opens_is_copied(tmp_path):
    applied = []
    for name in ("a", "b"):
        async with durable(tmp_path / name / FILE) as file:
            applied.append(await file.read(read_applied))
    async with in_memory() as rows:
        applied.append(await rows.read(read_applied))
    assert len({tuple(rows) for rows in applied}) == 1, "each has the times at which the one was migrated"
    assert len(applied[0]) == len(migrations())


def read_applied(db):
    return db.execute("SELECT number, applied_at FROM migration").fetchall()


def test_folders_stand_in_memory_where_there_is_some_and_go_with_the_test(tmp_path):
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.is_relative_to(MEMORY) == has_memory()


@pytest.mark.live
def test_what_starts_programs_stands_on_the_disk(tmp_path):
    assert not tmp_path.is_relative_to(MEMORY)


def test_a_folder_that_is_none_is_no_memory(tmp_path):
    assert not has_memory(tmp_path / "none")


def test_contexts_are_shared_only_where_nothing_distinguishes_them(tmp_path):
    assert ssl.create_default_context() is ssl.create_default_context()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    assert server is not ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    assert server.verify_mode == ssl.CERT_NONE != ssl.create_default_context().verify_mode
