"""Run the migrations of every SQLite file: numbered steps, each applied once and completely, and never edited."""

import functools
import hashlib
import logging
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ForeignDatabase, MigrationChanged, NewerDatabase

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "migrations"
APPLICATION_ID = 0x54534C47  # "TSLG", in the header of a ledger's file, says which application the file belongs to
CACHE_ID = 0x54534341  # "TSCA", in the header of the file of stored answers
# By the checksum of a step's present text: those of earlier texts, which had the same statements under another comment.
_REWORDED = {
    "f35c7e8db0d141016124988f57d5120f51cd8d954b3a565ea26aa42b32a8c3cf": (
        "1e86801fabc62ef4913587ec068169c5f192693d2baa25b750294504239bd6a4",
    ),
}
StepKind = Literal["transaction", "concurrently", "in batches"]
_KINDS: tuple[StepKind, ...] = ("concurrently", "in batches")
_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_APPLIED = """CREATE TABLE IF NOT EXISTS migration(
  number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from one version to the next."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, independent of its line endings."""
        return _hash_text(self.sql)

    @property
    def kind(self) -> StepKind:
        """How the step runs on a server that is in use, which its first line says: see `postgres_migrate`."""
        first = self.sql.partition("\n")[0].removeprefix("-- ")
        return next((kind for kind in _KINDS if first.startswith(kind)), "transaction")

    def was_applied_as(self, number: int, checksum: str) -> bool:
        """Return True if a step that was applied with this number and checksum is this one."""
        return number == self.number and checksum in (self.checksum, *_REWORDED.get(self.checksum, ()))


@functools.lru_cache(maxsize=256)  # each opening of a file asks for each several times
def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def migrations(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """Return the steps in a folder: `0001_name.sql` and so on. Raises ValueError if a number is missing.

    The files are read once: an update of the package must not change the steps of a process that already runs.
    """
    steps = [
        Migration(int(match[1]), match[2], path.read_text(encoding="utf-8"))
        for path in sorted(folder.iterdir())
        if (match := _NAME.fullmatch(path.name))
    ]
    if [m.number for m in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered 1 to {len(steps)}")
    return tuple(steps)


def migrate(
    db: SqlConnection, steps: Sequence[Migration] | None = None, *, application_id: int = APPLICATION_ID
) -> int:
    """Bring a database up to date and return its version: the number of its steps. `steps` are the ledger's by default.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: nothing was changed.
    """
    steps = migrations() if steps is None else steps
    version = verify(db, steps, application_id=application_id)
    for step in steps[version:]:
        with write_transaction(db):
            _apply(db, step, application_id)
    return _log_migrated(version, steps)


def migrate_within(db: SqlConnection) -> int:
    """Bring a ledger up to date within the caller's write transaction, and return its version. Raises as `migrate`."""
    steps = migrations()
    version = verify(db, steps)
    for step in steps[version:]:
        _apply(db, step, APPLICATION_ID)
    return _log_migrated(version, steps)


@contextmanager
def write_transaction(db: SqlConnection) -> Iterator[None]:
    """Run the block in one durable transaction. If the block raises, nothing is written."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite ends some transactions itself, for example when the disk is full
            db.execute("ROLLBACK")
        raise


def _log_migrated(version: int, steps: Sequence[Migration]) -> int:
    if 0 < version < len(steps):
        log.info("database migrated", extra={"before": version, "version": len(steps)})
    return len(steps)


def verify(db: SqlConnection, steps: Sequence[Migration] | None = None, *, application_id: int = APPLICATION_ID) -> int:
    """Return the version of a database after checking its applied steps; 0 if it is empty. Raises as `migrate`."""
    steps = migrations() if steps is None else steps
    return check_applied(steps, _read_applied(db, application_id))


def check_applied(steps: Sequence[Migration], applied: Sequence[tuple[int, str, str]]) -> int:
    """Return the version of a database with these applied steps, each given by number, name and checksum.

    Raises:
        NewerDatabase, MigrationChanged: the applied steps are not the first of our steps.
    """
    if len(applied) > len(steps):
        raise NewerDatabase(
            f"the database has version {len(applied)}; this software knows {len(steps)}: run the newer version that"
            " wrote it, or restore a backup of before"
        )
    for step, (number, name, checksum) in zip(steps, applied, strict=False):
        if not step.was_applied_as(number, checksum):
            raise MigrationChanged(f"migration {number} ({name}) differs from the one applied to this database")
    return len(applied)


def _read_applied(db: SqlConnection, application_id: int) -> list[tuple[int, str, str]]:
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    if owner == 0 and not tables:
        return []
    if owner != application_id or "migration" not in tables:
        raise ForeignDatabase("this is a database, but not one of ours")
    return db.execute("SELECT number, name, checksum FROM migration ORDER BY number").fetchall()


def _apply(db: SqlConnection, step: Migration, application_id: int) -> None:
    """Apply one step within a transaction, unless another process that started at the same time has applied it."""
    db.execute(f"PRAGMA application_id={application_id}")
    db.execute(_APPLIED)
    if db.execute("SELECT 1 FROM migration WHERE number=?", (step.number,)).fetchone() is not None:
        return
    for statement in statements(step.sql):
        db.execute(statement)
    row = (step.number, step.name, step.checksum, time.time_ns() // 1_000_000)
    db.execute("INSERT INTO migration VALUES(?,?,?,?)", row)


def statements(script: str) -> Iterator[str]:
    """Split a script into statements, because `executescript` would commit the transaction they must run in."""
    begun = ""
    for line in script.splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""
    if begun.strip():
        raise ValueError(f"the script ends within a statement: {begun.strip()[:60]!r}")
