"""A copy of a running database that is known to be good, and the way back."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from toolserver.errors import ToolserverError
from toolserver.storage.durable import connect, private
from toolserver.storage.migrate import ForeignDatabase, verify

Problems = Callable[[sqlite3.Connection], list[str]]


class BackupFailed(ToolserverError):
    """The copy is not good, or there is something where it should go. Nothing was changed."""


class DatabaseInUse(ToolserverError):
    """A running service has the database open."""


def back_up(path: Path, to: Path, *, problems: Problems) -> int:
    """Copy a database, in use or not; the copy's size. It appears under its name only when it was found good.

    Raises:
        BackupFailed: the copy has problems, or the name is taken.
    """
    if not path.is_file():
        raise BackupFailed(f"there is no database at {path}")
    if to.exists():
        raise BackupFailed(f"{to} exists already")
    _copied(path, to, problems)
    return to.stat().st_size


def restore(path: Path, backup: Path, *, problems: Problems) -> Path | None:
    """Put a backup in a database's place; where the database that was there is now, if there was one.

    Raises:
        BackupFailed: the backup has problems.
        DatabaseInUse: stop the service first.
        NewerDatabase, ForeignDatabase, MigrationChanged: the backup is not ours to use.
    """
    if not backup.is_file():
        raise BackupFailed(f"there is no backup at {backup}")
    ready = path.with_name(path.name + ".restoring")
    ready.unlink(missing_ok=True)
    _copied(backup, ready, problems)
    aside = None
    try:
        if path.exists():
            _alone(path)
            aside = path.with_name(f"{path.name}.before-{stamp()}")
            os.link(path, aside)
        ready.replace(path)
    finally:
        ready.unlink(missing_ok=True)
    _sync(path.parent)
    return aside


def stamp() -> str:
    """The time in a form that sorts, for names."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")


def file_problems(db: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with a file, and whether its every migration is one we know. Raises as `verify` does."""
    if not verify(db):
        raise ForeignDatabase("this database is empty")
    found = [text for (text,) in db.execute("PRAGMA integrity_check(20)") if text != "ok"]
    return found + [f"{row[0]} refers to nothing in {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]


def _copied(path: Path, to: Path, problems: Problems) -> None:
    """Copy through SQLite, with what is in the write-ahead log; look at the copy; then give it its name."""
    unfinished = to.with_name(to.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    private(unfinished)
    try:
        with closing(connect(path)) as source, closing(connect(unfinished)) as copy:
            source.backup(copy)  # in one step, which sees one moment and keeps no writer waiting
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, whole in itself
            found = file_problems(copy) or problems(copy)
        if found:
            raise BackupFailed(f"the copy of {path} is not good: {'; '.join(found[:5])}")
        _sync(unfinished)
        unfinished.rename(to)
        _sync(to.parent)
    except sqlite3.DatabaseError as error:
        raise BackupFailed(f"{path} cannot be copied: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _alone(path: Path) -> None:
    """Fold the write-ahead log into the file. SQLite lets only the last one who has it open do that."""
    with closing(connect(path)) as db:
        db.execute("PRAGMA busy_timeout=200")
        try:
            db.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            raise DatabaseInUse(f"{path} is in use: stop the service first") from error


def _sync(path: Path) -> None:
    """Until this returns, a new name or new bytes may not be on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
