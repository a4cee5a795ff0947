"""Numbered migrations of a database that must never be guessed at: each is applied once, whole, and never edited."""

import hashlib
import logging
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolserver.errors import ToolserverError
from toolserver.storage.db import NewerDatabase

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "migrations"
APPLICATION_ID = 0x54534C47  # "TSLG", in the file's header: whose database this is
_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_APPLIED = """CREATE TABLE IF NOT EXISTS migration(
  number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"""


class ForeignDatabase(ToolserverError):
    """The file is a database, but not one of ours."""


class MigrationChanged(ToolserverError):
    """A migration that was applied is not the one we have under its number."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a version to the next."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, however its lines end."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """The steps in a folder, `0001_what.sql` onwards, without a gap."""
    found = [
        Migration(int(match[1]), match[2], path.read_text(encoding="utf-8"))
        for path in sorted(folder.iterdir())
        if (match := _NAME.fullmatch(path.name))
    ]
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered 1 to {len(found)}")
    return tuple(found)


def migrate(db: sqlite3.Connection, steps: Sequence[Migration] | None = None) -> int:
    """Bring a database up to date; its version afterwards.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: nothing was changed.
    """
    steps = migrations() if steps is None else steps
    version = verify(db, steps)
    for step in steps[version:]:
        _apply(db, step)
    return len(steps)


def verify(db: sqlite3.Connection, steps: Sequence[Migration] | None = None) -> int:
    """The version of a database whose every step is one of ours; 0 of an empty one. Raises as `migrate` does."""
    steps = migrations() if steps is None else steps
    applied = _applied(db)
    if len(applied) > len(steps):
        raise NewerDatabase(f"the database has version {len(applied)}; this software knows {len(steps)}")
    for step, (number, name, checksum) in zip(steps, applied, strict=False):
        if (step.number, step.checksum) != (number, checksum):
            raise MigrationChanged(f"migration {number} ({name}) is not what was applied to this database")
    return len(applied)


def _applied(db: sqlite3.Connection) -> list[tuple[int, str, str]]:
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    if owner == 0 and not tables:
        return []
    if owner != APPLICATION_ID or "migration" not in tables:
        raise ForeignDatabase("this is a database, but not a ledger of ours")
    return db.execute("SELECT number, name, checksum FROM migration ORDER BY number").fetchall()


def _apply(db: sqlite3.Connection, step: Migration) -> None:
    """One step in one transaction. A second process that starts at the same moment finds it done."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(_APPLIED)
        if db.execute("SELECT 1 FROM migration WHERE number=?", (step.number,)).fetchone() is None:
            for statement in statements(step.sql):
                db.execute(statement)
            row = (step.number, step.name, step.checksum, time.time_ns() // 1_000_000)
            db.execute("INSERT INTO migration VALUES(?,?,?,?)", row)
            log.info("database migrated", extra={"version": step.number, "step": step.name})
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """A script's statements one by one: `executescript` would end the transaction it is to run in."""
    begun = ""
    for line in script.splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""
    if begun.strip():
        raise ValueError(f"the script ends within a statement: {begun.strip()[:60]!r}")
