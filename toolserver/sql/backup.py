"""Back up a database that may be in use, verify the copy, and restore backups."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from toolserver.core.private_file import sync_folder
from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseError, DatabaseUnusable, ForeignDatabase
from toolserver.sql.migrate import verify
from toolserver.sql.sqlite import connect, private

Problems = Callable[[SqlConnection], list[str]]


class BackupFailed(ToolserverError):
    """The copy is damaged, or its target already exists. Nothing was changed."""


class DatabaseInUse(ToolserverError):
    """A running service has the database open."""


def back_up(path: Path, to: Path, *, problems: Problems) -> int:
    """Copy a database and return the size of the copy in bytes. The copy gets its name only after it was verified.

    Raises:
        BackupFailed: the copy has problems, or the name is taken.
    """
    if not path.is_file():
        raise BackupFailed(f"there is no database at {path}")
    if to.exists():
        raise BackupFailed(f"{to} already exists")
    _copied(path, to, problems)
    return to.stat().st_size


def restore(path: Path, backup: Path, *, problems: Problems) -> Path | None:
    """Replace a database with a backup, and return the new path of the old database, if there was one.

    Raises:
        BackupFailed: the backup has problems.
        DatabaseInUse: a service has the database open; stop it first.
        NewerDatabase, ForeignDatabase, MigrationChanged: this software cannot use the backup.
    """
    if not backup.is_file():
        raise BackupFailed(f"there is no backup at {backup}")
    ready = path.with_name(path.name + ".restoring")
    ready.unlink(missing_ok=True)
    _copied(backup, ready, problems)
    aside = None
    try:
        if path.exists():
            require_alone(path)
            aside = path.with_name(f"{path.name}.before-{stamp()}")
            os.link(path, aside)
        ready.replace(path)
    finally:
        ready.unlink(missing_ok=True)
    sync_folder(path.parent)
    return aside


def stamp() -> str:
    """Return the time (UTC) for file names, in a form that sorts."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")


def file_problems(db: SqlConnection) -> list[str]:
    """Return the problems that SQLite finds in a file, after checking its migrations. Raises as `verify` does."""
    if not verify(db):
        raise ForeignDatabase("this database is empty")
    problems = [text for (text,) in db.execute("PRAGMA integrity_check(20)") if text != "ok"]
    return problems + [
        f"{row[0]} refers to a missing row in {row[2]}" for row in db.execute("PRAGMA foreign_key_check")
    ]


def _copied(path: Path, to: Path, problems: Problems) -> None:
    """Copy through SQLite, including the write-ahead log, check the copy, and then give it its name."""
    unfinished = to.with_name(to.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    private(unfinished)
    try:
        with closing(connect(path)) as source, closing(connect(unfinished)) as copy:
            source.backup(copy)  # in one step: a snapshot that does not block writers
            copy.execute("PRAGMA journal_mode=DELETE")  # a single file without side files
            damage = file_problems(copy) or problems(copy)
        if damage:
            raise BackupFailed(f"the copy of {path} is damaged: {'; '.join(damage[:5])}")
        sync_folder(unfinished)
        unfinished.rename(to)
        sync_folder(to.parent)
    except (DatabaseError, sqlite3.Error) as error:
        raise BackupFailed(f"{path} cannot be copied: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def require_alone(path: Path) -> None:
    """Fold the write-ahead log into the file, which SQLite allows only the last process that has the file open.

    Raises DatabaseInUse.
    """
    with closing(connect(path)) as db:
        db.execute("PRAGMA busy_timeout=200")
        try:
            db.execute("PRAGMA journal_mode=DELETE")
        except DatabaseUnusable as error:
            raise DatabaseInUse(f"{path} is in use: stop the service first") from error
