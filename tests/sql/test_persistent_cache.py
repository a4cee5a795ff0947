"""Good answers on disk, when the service ends at an awkward moment."""

import logging
import random
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.requirements import proves
from toolserver.sql.persistent_cache import MIGRATIONS, PersistentCache, StoredAnswer, open_database
from toolserver.upstream.member_watch import FORGET_S
from toolserver.upstream.source import StoredBody
from toolserver.upstream.source_health import CHANGES, QUARTER_S, QUARTERS, SourceChange, SourceQuarter

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
LATER = NOW.timestamp() + 60


def warnings_in(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


class Interrupted:
    """A connection that tells when a transaction is open, and gives others a turn then."""

    def __init__(self, db, begun):
        self._db, self._begun = db, begun

    def __getattr__(self, name):
        return getattr(self._db, name)

    async def execute(self, sql, *values):
        cursor = await self._db.execute(sql, *values)
        if sql.startswith("BEGIN"):
            self._begun.set()
            await checkpoint()
        return cursor


async def test_an_end_in_the_middle_of_writing_loses_nothing(tmp_path, caplog):
    path, begun = tmp_path / "answers.sqlite3", anyio.Event()
    async with open_database(path, MIGRATIONS) as db, anyio.create_task_group() as tasks:
        store = PersistentCache(Interrupted(db, begun), now=lambda: NOW)
        await tasks.start(store.run)
        store.save_answer("one", StoredAnswer(b"1", {}), expires_at=LATER)
        await begun.wait()
        store.save_answer("two", StoredAnswer(b"2", {}), expires_at=LATER)
        tasks.cancel_scope.cancel()

    async with open_database(path, MIGRATIONS) as db:
        again = PersistentCache(db, now=lambda: NOW)
        assert [(await again.load_answer(key)).payload for key in ("one", "two")] == [b"1", b"2"]
    assert not warnings_in(caplog)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return data[:4096] + bytes(len(data) - 4096)


def scribbled(data: bytes) -> bytes:
    return data[:100] + b"\xff" * 4000 + data[4100:]


@pytest.mark.parametrize("damage", [cut, zeroed, scribbled, lambda data: b"no database at all" * 500])
async def test_a_damaged_file_is_set_aside_and_begun_anew(tmp_path, caplog, damage):
    path = tmp_path / "answers.sqlite3"
    await kept(path, "one", b"1" * 100_000)
    path.write_bytes(damage(path.read_bytes()))

    await kept(path, "two", b"2")
    async with open_database(path, MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW)
        assert (await store.load_answer("two")).payload == b"2"
        assert await store.load_answer("one") is None
    assert [record.file for record in caplog.records if record.levelname == "WARNING"] == ["answers.sqlite3.damaged"]
    assert (tmp_path / "answers.sqlite3.damaged").exists()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
async def test_the_file_of_an_older_version_is_migrated_with_its_answers(tmp_path, caplog, version):
    path = tmp_path / "answers.sqlite3"
    async with open_database(path, MIGRATIONS[:version]) as db:
        await db.execute("INSERT INTO answer VALUES('one', ?, ?)", (LATER, zlib.compress(b"{}")))
    async with open_database(path, MIGRATIONS) as db:
        assert await db.execute_fetchall("SELECT key FROM answer") == [("one",)]
    assert warnings_in(caplog) == []


async def test_the_file_of_a_version_with_another_text_of_a_migration_is_begun_anew(tmp_path, caplog):
    path = tmp_path / "answers.sqlite3"
    other = replace(MIGRATIONS[0], sql="-- another\n" + MIGRATIONS[0].sql)
    async with open_database(path, [other]):
        pass
    async with open_database(path, MIGRATIONS) as db:
        assert await PersistentCache(db, now=lambda: NOW).load_answer("one") is None
    assert (tmp_path / "answers.sqlite3.damaged").exists()


async def test_what_breaks_while_it_runs_is_a_miss_and_not_an_error(tmp_path, caplog):
    path = tmp_path / "answers.sqlite3"
    async with open_database(path, MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW)
        await db.execute("DROP TABLE answer")
        await db.execute("DROP TABLE point")
        assert await store.load_answer("one") is None
        assert await store.load_history() == []
        await store.sweep(LATER)
    assert len(warnings_in(caplog)) == 3


async def kept(path, key, payload):
    async with open_database(path, MIGRATIONS) as db, anyio.create_task_group() as tasks:
        store = PersistentCache(db, now=lambda: NOW)
        await tasks.start(store.run)
        store.save_answer(key, StoredAnswer(payload, {}), expires_at=LATER)
        tasks.cancel_scope.cancel()


async def until_written(store):
    with anyio.fail_after(20):
        while store._waiting:
            await anyio.to_thread.run_sync(int)  # a turn for the writer, however busy the machine is


async def test_the_oldest_answers_are_removed_when_the_file_is_too_large(tmp_path):
    most = 400_000
    async with open_database(tmp_path / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW, most_bytes=most, measure_every=10)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            for number in range(400):
                body = random.Random(number).randbytes(4000)
                store.save_answer(f"a{number}", StoredAnswer(body, {}), expires_at=LATER + number)
                if number % 10 == 9:
                    await until_written(store)
            tasks.cancel_scope.cancel()
        async with db.execute("SELECT count(*), min(expires_at), max(expires_at) FROM answer") as cursor:
            count, first, last = (await cursor.fetchall())[0]
        async with db.execute("PRAGMA page_count") as cursor:
            pages = (await cursor.fetchall())[0][0]

    assert 40 <= count < 200
    assert (first > LATER, last) == (True, LATER + 399)
    assert pages * 4096 < most * 1.5


async def test_what_sources_did_is_kept_for_a_day_and_the_changes_to_a_number(tmp_path):
    now = int(NOW.timestamp() // QUARTER_S)
    rows = [SourceQuarter(number, 1, 2, 3, None, number * QUARTER_S, "timeout") for number in range(now - 120, now + 1)]
    changes = [SourceChange(float(number), "A", "down", "timeout") for number in range(CHANGES + 30)]
    async with open_database(tmp_path / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            for row in rows:
                store.save_quarter("A", row)
            store.save_quarter("A", rows[-1]._replace(good=9))
            for change in changes:
                store.save_change(change)
            await until_written(store)
            tasks.cancel_scope.cancel()
        assert await store.load_quarters() == [("A", row) for row in [*rows[-QUARTERS:-1], rows[-1]._replace(good=9)]]
        assert await store.load_changes() == changes[-CHANGES:]
        await store.sweep(NOW.timestamp())
        for table, count in (("source_quarter", QUARTERS), ("source_change", CHANGES)):
            async with db.execute(f"SELECT count(*) FROM {table}") as cursor:
                assert (await cursor.fetchall())[0][0] == count


@proves("answers.member-missing")
async def test_the_usual_members_of_answers_are_kept_until_they_are_forgotten(tmp_path):
    count = {"Row.price": {"filled": 3, "seen": 4, "filled_at": 7.0, "lacking": 0}}
    old, new = NOW.timestamp() - FORGET_S - 1, NOW.timestamp()
    async with open_database(tmp_path / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            store.save_members("A", "q", new - 5, {})
            store.save_members("A", "q", new, count)
            store.save_members("B", "q", old, count)
            await until_written(store)
            tasks.cancel_scope.cancel()
        assert await store.load_members() == [("B", "q", old, count), ("A", "q", new, count)]
        await store.sweep(NOW.timestamp())
        assert await store.load_members() == [("A", "q", new, count)]


class Counted:
    """A connection that counts the trips to its thread."""

    def __init__(self, db):
        self._db, self.trips = db, 0

    def __getattr__(self, name):
        method = getattr(self._db, name)
        if name in ("execute", "executemany", "execute_fetchall"):
            self.trips += 1
        return method


async def write_bodies(path, count):
    """The trips to write this many bodies with the results of their sources, and those to read one of the bodies."""
    async with open_database(path, MIGRATIONS) as db:
        store = PersistentCache(connection := Counted(db), now=lambda: NOW)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            for number in range(count):
                store.save("A", str(number), StoredBody(b"%d" % number, NOW, {"etag": "x"}), keep_s=60)
                store.save_quarter(f"A{number}", SourceQuarter(1, 1, 0, 0, None, 1.0, "ok"))
            tasks.cancel_scope.cancel()
        written = connection.trips
        assert (await store.load("A", str(count - 1))).body == b"%d" % (count - 1)
    return written, connection.trips - written


async def test_many_writes_take_as_many_trips_as_few(tmp_path):
    few = await write_bodies(tmp_path / "few.sqlite3", 2)
    assert await write_bodies(tmp_path / "many.sqlite3", 50) == few
    assert few[1] == 1


async def test_of_a_body_that_was_renewed_and_saved_the_last_is_kept(tmp_path):
    old, new = (StoredBody(body, NOW, {}) for body in (b"old", b"new"))
    later = [NOW + timedelta(seconds=seconds) for seconds in (10, 20, 30)]
    async with open_database(tmp_path / "answers.sqlite3", MIGRATIONS) as db:
        store = PersistentCache(db, now=lambda: NOW)
        async with anyio.create_task_group() as tasks:
            await tasks.start(store.run)
            store.save("A", "renewed last", old, keep_s=60)
            store.renew("A", "renewed last", later[0])
            store.save("A", "saved last", old, keep_s=60)
            store.renew("A", "saved last", later[2])
            store.save("A", "saved last", replace(new, fetched_at=later[1]), keep_s=60)
            tasks.cancel_scope.cancel()
        assert await store.load("A", "renewed last") == replace(old, fetched_at=later[0])
        assert await store.load("A", "saved last") == replace(new, fetched_at=later[1])
