"""The file that the service can do without: migrated by the one runner, set aside when it cannot be used."""

import sqlite3
import stat
from contextlib import closing

import pytest

from toolserver.sql.errors import NewerDatabase, StorageFailed
from toolserver.sql.migrate import CACHE_ID, Migration
from toolserver.sql.persistent_cache import open_database

STEPS = (Migration(1, "first", "CREATE TABLE a(x);\n"), Migration(2, "second", "ALTER TABLE a ADD COLUMN y;\n"))


async def rows(path, steps=STEPS, **how):
    async with open_database(path, steps, **how) as db, db.execute("SELECT * FROM a") as cursor:
        return [tuple(row) for row in await cursor.fetchall()]


async def put(path, steps=STEPS):
    async with open_database(path, steps) as db:
        await db.execute("INSERT INTO a(x) VALUES(1)")


async def test_each_step_is_applied_once_and_the_file_says_whose_it_is(tmp_path):
    path = tmp_path / "new" / "x.sqlite3"
    await put(path, STEPS[:1])
    assert await rows(path) == [(1, None)]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (CACHE_ID,)
        assert db.execute("SELECT number FROM migration").fetchall() == [(1,), (2,)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_of_newer_software_is_left_alone(tmp_path):
    path = tmp_path / "x.sqlite3"
    await put(path)
    with pytest.raises(NewerDatabase):
        await rows(path, STEPS[:1])
    assert await rows(path) == [(1, None)]


async def test_a_database_of_another_form_is_set_aside(tmp_path, caplog):
    path = tmp_path / "x.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE a(x)")
        db.execute("PRAGMA user_version=3")
    assert await rows(path) == []
    assert (tmp_path / "x.sqlite3.damaged").exists()
    assert "set aside" in caplog.text


async def test_a_file_that_is_busy_is_not_set_aside(tmp_path):
    path = tmp_path / "x.sqlite3"
    await put(path, STEPS[:1])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageFailed, match=r"another process is writing to it; wait for it, or stop it$"):
            await rows(path, busy_ms=1)
    assert [each.name for each in tmp_path.glob("*.damaged")] == []
