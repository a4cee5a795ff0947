"""A file is refused as soon as it is not the one that was opened, or there is no room to write."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import FileGuard, durable, name_file


def make(path, *, named=True):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE note(word TEXT)")
        if named:
            name_file(db)


@pytest.fixture
def path(tmp_path):
    make(tmp_path / "x.sqlite3")
    return tmp_path / "x.sqlite3"


@pytest.fixture
def guard(path):
    guard = FileGuard(path)
    yield guard
    guard.close()


def delete(path):
    path.unlink()


def replace(path):
    other = path.with_name("other")
    make(other)
    other.replace(path)


def overwrite(path):
    other = path.with_name("other")
    make(other)
    path.write_bytes(other.read_bytes())


def scribble(path):
    path.write_bytes(b"x" * 8192)


def truncate(path):
    path.write_bytes(b"")


def test_the_file_that_was_opened_is_good(guard):
    guard.check_file()
    guard.check_room()


@pytest.mark.parametrize("harm", [delete, replace, overwrite, scribble, truncate])
def test_a_file_that_is_not_the_one_that_was_opened_is_refused(guard, path, harm):
    harm(path)
    with pytest.raises(StorageFailed, match="restore a backup"):
        guard.check_file()


def test_a_file_that_is_named_later_is_the_same(path):
    path.unlink()
    make(path, named=False)
    guard = FileGuard(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        name_file(db)
        guard.check_file()
    guard.check_file()
    overwrite(path)
    with pytest.raises(StorageFailed):
        guard.check_file()
    guard.close()


def test_too_little_room_is_refused(path):
    guard = FileGuard(path, least_free=2**62)
    with pytest.raises(StorageFailed, match="full"):
        guard.check_room()
    guard.close()


def test_a_file_that_cannot_be_written_is_refused(guard, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(StorageFailed, match="read-only"):
        guard.check_room()


async def test_nothing_is_read_from_or_written_to_a_file_that_was_replaced(path):
    path.unlink()
    async with durable(path) as file:
        await file.probe()
        replace(path)
        for asked in (file.probe(), file.read(lambda db: 1), file.apart(lambda db: 1)):
            with pytest.raises(StorageFailed, match="not the file"):
                await asked


async def test_without_room_a_file_is_read_and_not_written(tmp_path):
    async with durable(tmp_path / "x.sqlite3", least_free=2**62) as file:
        with pytest.raises(StorageFailed, match="full"):
            await file.probe()
        assert await file.read(lambda db: 1) == 1
