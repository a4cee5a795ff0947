"""The tables of a file without a file: every kind of read sees what was written, and nothing outlives the block."""

import threading

import anyio
import pytest

from toolserver.sql.errors import StorageClosed, StorageFailed
from toolserver.sql.sqlite import in_memory


def put(digest):
    return lambda db: db.execute("INSERT INTO webhook_payload VALUES(?, x'00', 0)", (digest,)).rowcount


def digests(db):
    return [digest for (digest,) in db.execute("SELECT digest FROM webhook_payload ORDER BY digest")]


async def test_every_kind_of_read_sees_what_was_written_and_the_next_block_sees_nothing():
    async with in_memory() as file:
        assert await file.alone(put("a")) == 1
        await file.probe()
        assert await file.read(digests) == await file.apart(digests) == ["a"]
        assert (file.is_same_file(), file.shared, await file.find_rewritten()) == (True, False, [])
    with pytest.raises(StorageClosed):
        await file.read(digests)
    async with in_memory() as file:
        assert await file.read(digests) == []


async def test_a_write_that_fails_spoils_no_other_and_its_error_is_one_of_ours():
    async with in_memory() as file:
        outcomes = []

        async def write(digest):
            try:
                outcomes.append(await file.alone(put(digest)))
            except StorageFailed:
                outcomes.append("refused")

        async with anyio.create_task_group() as tasks:
            for digest in ("a", "a", "b"):
                tasks.start_soon(write, digest)
        assert sorted(outcomes, key=str) == [1, 1, "refused"]
        assert await file.read(digests) == ["a", "b"]


async def test_nothing_is_migrated_before_the_first_operation_and_no_thread_remains(monkeypatch):
    before = threading.active_count()
    async with in_memory() as file:
        migrated = []
        monkeypatch.setattr("toolserver.sql.sqlite.migrate", migrated.append)
        assert await file.read(lambda db: db.execute("SELECT 1").fetchone()) == (1,)
        assert len(migrated) == 1
        await file.read(lambda db: None)
        assert len(migrated) == 1
    assert threading.active_count() <= before + 1, "the thread that waited for the end of ours may remain"
