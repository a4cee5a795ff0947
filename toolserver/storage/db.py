"""SQLite behind one thread: opening, pragmas and numbered migrations. The only importer of aiosqlite."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

from toolserver.errors import ToolserverError

log = logging.getLogger(__name__)

Connection = aiosqlite.Connection


class NewerDatabase(ToolserverError):
    """The file was written by a newer version of this software."""


@asynccontextmanager
async def opened(path: Path, migrations: tuple[str, ...], *, synchronous: str) -> AsyncIterator[Connection]:
    """A connection to a database brought up to date: `migrations[n]` leads from version n to n + 1.

    Raises:
        NewerDatabase: the file is ahead of us.
    """
    _private(path)
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA journal_mode=WAL")
        await db.execute(f"PRAGMA synchronous={synchronous}")
        await db.execute("PRAGMA busy_timeout=2000")
        await _migrate(db, path, migrations)
        yield db


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
