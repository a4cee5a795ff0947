"""Make files fast in tests: folders in memory, new ledgers copied from one that was migrated, certificates read once.

Hundreds of tests open a new ledger. Migrating one step by step takes 40 ms of CPU, and a disk syncs each step. Tests
that start programs or measure time use the disk, as a service does, and so do machines with little memory.
"""

import functools
import os
import shutil
import sqlite3
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolserver.sql import sealed_file, sqlite
from toolserver.sql.migrate import migrate, migrations, verify
from toolserver.sql.sealed_file import open_sealed

MEMORY = Path("/dev/shm")
LEAST_FREE = 2 << 30  # bytes


@functools.cache
def has_memory(folder: Path = MEMORY) -> bool:
    """Whether there is a file system in memory, with room, from which programs may be started."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= LEAST_FREE and not found.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session")
def _memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toolserver-tests-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the test's own."""
    if not has_memory() or request.node.get_closest_marker("live"):
        yield tmp_path_factory.mktemp("test")
        return
    folder = Path(tempfile.mkdtemp(dir=request.getfixturevalue("_memory")))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _template() -> sqlite3.Connection:
    """An empty ledger with all its tables."""
    db = sqlite3.connect(":memory:", check_same_thread=False)
    migrate(db)
    return db


def fill_if_new(db: sqlite3.Connection) -> None:
    """Copy all tables into a new ledger, unless a test has put other steps in place of ours."""
    if sealed_file.migrations is migrations and not db.in_transaction and not verify(db):
        _template().backup(db)


def open_copied(db: sealed_file.SealedConnection, path: Path) -> sealed_file.SealedFile:
    """As `open_sealed`, but a new file's tables are copied."""
    fill_if_new(db)
    return open_sealed(db, path)


def migrate_copied(db: sqlite3.Connection) -> int:
    """As `migrate`, but a new database's tables are copied."""
    fill_if_new(db)
    return migrate(db)


@pytest.fixture(scope="session", autouse=True)
def _ledgers_are_copied() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "open_sealed", open_copied)
        patch.setattr(sqlite, "migrate", migrate_copied)
        yield
        _template().close()
        _template.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """Share contexts for clients that trust the usual authorities: reading their certificates takes 20 ms each time."""
    create = ssl.create_default_context
    shared = functools.cache(create)

    def create_or_share(*purpose: Any, **files: Any) -> ssl.SSLContext:
        is_named = "SSL_CERT_FILE" in os.environ or "SSL_CERT_DIR" in os.environ
        return create(*purpose, **files) if purpose or is_named or set(files) - {"cafile"} else shared(**files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create_or_share)
        yield
