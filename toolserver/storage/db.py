"""SQLite behind one thread: opening, pragmas and numbered migrations. The only importer of aiosqlite."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiosqlite

from toolserver.errors import ToolserverError

log = logging.getLogger(__name__)

Connection = aiosqlite.Connection
DatabaseError = aiosqlite.DatabaseError


class NewerDatabase(ToolserverError):
    """The file was written by a newer version of this software."""


@asynccontextmanager
async def opened(path: Path, migrations: tuple[str, ...]) -> AsyncIterator[Connection]:
    """A connection to a database that can be done without, brought up to date: `migrations[n]` leads from n to n + 1.

    A file that is no database, or a damaged one, is set aside under another name and begun anew.

    Raises:
        NewerDatabase: the file is ahead of us.
    """
    async with AsyncExitStack() as stack:
        try:
            db = await stack.enter_async_context(_open(path, migrations))
        except DatabaseError as error:
            if isinstance(error, aiosqlite.OperationalError):  # busy, full or read-only: not the file's fault
                raise
            await stack.aclose()
            log.warning("a damaged file was set aside", extra={"file": _set_aside(path), "error": str(error)})
            db = await stack.enter_async_context(_open(path, migrations))
        yield db


@asynccontextmanager
async def _open(path: Path, migrations: tuple[str, ...]) -> AsyncIterator[Connection]:
    _private(path)
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA journal_mode=WAL")
        await db.execute("PRAGMA synchronous=NORMAL")
        await db.execute("PRAGMA busy_timeout=2000")
        await _check(db)
        await _migrate(db, path, migrations)
        yield db


async def _check(db: Connection) -> None:
    """Raises DatabaseError when the pages of the file do not hold together. Takes some 5 ms for 10 MB."""
    async with db.execute("PRAGMA quick_check(1)") as cursor:
        row = await cursor.fetchone()
    if row is None or row[0] != "ok":
        raise DatabaseError(row[0] if row else "the check says nothing")


def _set_aside(path: Path) -> str:
    """Take a file out of the way, without the side files that belong to it; its new name."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return path.replace(path.with_name(f"{path.name}.damaged")).name


def _private(path: Path) -> None:
    """Make the file, readable by its owner only, before anything is in it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)


async def _migrate(db: Connection, path: Path, migrations: tuple[str, ...]) -> None:
    async with db.execute("PRAGMA user_version") as cursor:
        row = await cursor.fetchone()
    version = row[0] if row else 0
    if version > len(migrations):
        raise NewerDatabase(f"{path} has version {version}; this software knows {len(migrations)}")
    for number in range(version, len(migrations)):
        await db.executescript(f"BEGIN IMMEDIATE;\n{migrations[number]}\nPRAGMA user_version={number + 1};\nCOMMIT;")
        log.info("database migrated", extra={"file": path.name, "version": number + 1})
