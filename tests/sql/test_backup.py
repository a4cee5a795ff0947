"""A backup is a copy that was found good, and restoring never destroys what was there."""

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from toolserver.sql.backup import BackupFailed, DatabaseInUse, back_up, restore
from toolserver.sql.errors import ForeignDatabase
from toolserver.sql.migrate import migrate
from toolserver.sql.sqlite import connect, durable


def none(db):
    return []


def notes(path):
    with closing(sqlite3.connect(path)) as db:
        return [word for (word,) in db.execute("SELECT word FROM note")]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "x.sqlite3"
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        migrate(db)
        db.execute("CREATE TABLE note(word)")
        db.execute("INSERT INTO note VALUES('old')")
    return path


def write(path, word):
    with closing(connect(path)) as db:
        db.execute("INSERT INTO note VALUES(?)", (word,))


async def test_a_running_database_is_copied_with_what_was_just_committed(database, tmp_path):
    async with durable(database) as file:
        await file.alone(lambda db: db.execute("INSERT INTO note VALUES('new')") and None)
        size = back_up(database, tmp_path / "backups" / "copy", problems=none)
        await file.alone(lambda db: db.execute("INSERT INTO note VALUES('later')") and None)
    copy = tmp_path / "backups" / "copy"
    assert size == copy.stat().st_size > 0
    assert notes(copy) == ["old", "new"]
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_only_the_owner_can_read_a_backup(database, tmp_path):
    back_up(database, tmp_path / "copy", problems=none)
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600


def test_a_name_that_is_taken_is_not_overwritten(database, tmp_path):
    (tmp_path / "copy").write_text("precious")
    with pytest.raises(BackupFailed, match="already exists"):
        back_up(database, tmp_path / "copy", problems=none)
    assert (tmp_path / "copy").read_text() == "precious"


def test_what_is_not_there_cannot_be_copied(tmp_path):
    with pytest.raises(BackupFailed, match="no database"):
        back_up(tmp_path / "nothing", tmp_path / "copy", problems=none)
    with pytest.raises(BackupFailed, match="no backup"):
        restore(tmp_path / "x", tmp_path / "nothing", problems=none)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_with_problems_does_not_appear(database, tmp_path):
    with pytest.raises(BackupFailed, match="the books do not balance"):
        back_up(database, tmp_path / "copy", problems=lambda db: ["the books do not balance"])
    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite3"]


def test_a_damaged_file_is_noticed(database, tmp_path):
    with closing(connect(database)) as db:
        db.execute("CREATE TABLE much(text)")
        db.executemany("INSERT INTO much VALUES(?)", [("x" * 500,)] * 500)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = db.execute("PRAGMA page_count").fetchone()[0] * 4096
    with database.open("r+b") as file:
        file.seek(size - 20 * 4096)
        file.write(os.urandom(8 * 4096))
    with pytest.raises(BackupFailed):
        back_up(database, tmp_path / "copy", problems=none)
    assert not (tmp_path / "copy").exists()


def test_a_reference_to_nothing_is_noticed(database, tmp_path):
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES(?, 99, 'acct_x', 0)", ("0" * 64,))
    with pytest.raises(BackupFailed, match="token refers to a missing row in account"):
        back_up(database, tmp_path / "copy", problems=none)


def test_a_backup_takes_the_place_and_what_was_there_is_kept(database, tmp_path):
    back_up(database, tmp_path / "copy", problems=none)
    write(database, "lost otherwise")
    aside = restore(database, tmp_path / "copy", problems=none)
    assert notes(database) == ["old"]
    assert notes(aside) == ["old", "lost otherwise"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "x.sqlite3", aside.name]


def test_a_backup_can_be_restored_where_there_is_nothing(database, tmp_path):
    back_up(database, tmp_path / "copy", problems=none)
    assert restore(tmp_path / "new" / "x.sqlite3", tmp_path / "copy", problems=none) is None
    assert notes(tmp_path / "new" / "x.sqlite3") == ["old"]


async def test_a_database_in_use_is_not_replaced(database, tmp_path):
    back_up(database, tmp_path / "copy", problems=none)
    async with durable(database) as file:
        with pytest.raises(DatabaseInUse):
            restore(database, tmp_path / "copy", problems=none)
        await file.alone(lambda db: db.execute("INSERT INTO note VALUES('still')") and None)
    assert notes(database) == ["old", "still"]
    assert sorted(path.name for path in tmp_path.glob("[!k]*")) == ["copy", "x.sqlite3"]


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_what_is_no_backup_of_ours_replaces_nothing(database, tmp_path, content):
    (tmp_path / "copy").write_bytes(content)
    with pytest.raises((BackupFailed, ForeignDatabase)):
        restore(database, tmp_path / "copy", problems=none)
    assert notes(database) == ["old"]
    assert (tmp_path / "copy").read_bytes() == content
