"""Open the SQLite file of stored answers, which the service can do without. The only importer of aiosqlite."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import aiosqlite
import anyio.to_thread

from toolserver.sql.errors import ForeignDatabase, StorageFailed
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.group_commit import BUSY_MS, private
from toolserver.sql.migrate import CACHE_ID, Migration, migrate

log = logging.getLogger(__name__)

Connection = aiosqlite.Connection
DatabaseError = aiosqlite.DatabaseError


@asynccontextmanager
async def open_database(path: Path, steps: Sequence[Migration]) -> AsyncIterator[Connection]:
    """Open a file that the service can do without, and bring it up to date.

    A damaged file, or one of another form, is renamed, and a new one is created.

    Raises:
        NewerDatabase, MigrationChanged: the file was written by other software and is left unchanged.
        StorageFailed: the file is busy, cannot be written, or the disk is full.
    """
    async with AsyncExitStack() as stack:
        try:
            db = await stack.enter_async_context(_open(path, steps))
        except (DatabaseError, ForeignDatabase) as error:
            if isinstance(error, aiosqlite.OperationalError):  # not the file's fault
                raise StorageFailed(describe_disk_error(error, path, DATA_DIR)) from error
            await stack.aclose()
            log.warning("a damaged file was set aside", extra={"file": _set_aside(path), "error": str(error)})
            db = await stack.enter_async_context(_open(path, steps))
        except OSError as error:
            raise StorageFailed(describe_disk_error(error, path, DATA_DIR)) from error
        yield db


@asynccontextmanager
async def _open(path: Path, steps: Sequence[Migration]) -> AsyncIterator[Connection]:
    await anyio.to_thread.run_sync(_prepare, path, steps)
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA synchronous=NORMAL")
        await db.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        yield db


def _prepare(path: Path, steps: Sequence[Migration]) -> None:
    """Create, check and migrate the file. Raises DatabaseError if its pages are damaged. 10 MB take about 5 ms."""
    private(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        db.execute("PRAGMA journal_mode=WAL")
        row = db.execute("PRAGMA quick_check(1)").fetchone()
        if row is None or row[0] != "ok":
            raise DatabaseError(row[0] if row else "the check returned nothing")
        migrate(db, steps, application_id=CACHE_ID)


def _set_aside(path: Path) -> str:
    """Rename a file, without the side files that belong to it, and return its new name."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return path.replace(path.with_name(f"{path.name}.damaged")).name
