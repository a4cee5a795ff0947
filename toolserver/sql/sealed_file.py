"""Manage the seal of a ledger file: created with the file, updated by every write, checked at start and on demand."""

import base64
import functools
import json
import logging
import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from toolserver.core.private_file import write_private
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import RowsRewritten, StorageFailed
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.migrate import Migration, migrate, migrate_within, migrations, verify, write_transaction
from toolserver.sql.row_seal import SIZE, TABLES, RowSeal, SealedConnection, read_seal

log = logging.getLogger(__name__)

KEY = "keys/rows.json"  # below the data directory
SMALL = 300_000  # maximum transfers of a file that is checked before the first request is accepted
MARK = "rows"  # the outside mark for how many transactions were sealed


def open_sealed(db: SealedConnection, path: Path) -> "SealedFile":
    """Migrate the file behind a writing connection, and make the connection update the seal.

    A file is sealed as it is if it is new, was never sealed, or was migrated and had a valid seal before. Migrations
    and seal are one transaction: a process that is killed leaves the file as it was, and the next start does it all.

    Raises:
        RowsRewritten: the seal is invalid, and a migration would have made a new one.
        MarksBroken: it cannot be read whether the file was sealed before.
        NewerDatabase, ForeignDatabase, MigrationChanged: this software must not write to the file.
    """
    verify(db)  # before anything is created beside the file
    file = SealedFile(path)
    if not _is_current(db):
        with write_transaction(db):
            file.bring_up_to_date(db)
    file.seal.install(db)
    file.note_progress()  # at once, because a file that was ever sealed is not sealed again
    return file


def note_restored(path: Path) -> None:
    """Record a restored backup as the newest state of the file, which it now is. Other marks are unchanged."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        sealed = read_seal(db) if _has_seal(db) else None
    HighWater(path.parent).change(MARK, lambda _: sealed.counter if sealed else 0)


class SealedFile:
    """The seal of a file, its key, and what is known about other writers of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seal = RowSeal(read_key(path.parent / KEY))
        self.marks = HighWater(path.parent)
        self.checked_at: int | None = None  # the writer's `data_version` at the last check without findings
        self._rewritten: str | None = None

    def bring_up_to_date(self, db: SqlConnection) -> None:
        """Migrate and seal the file within the caller's transaction. See `open_sealed`.

        Only the mark outside the file says that it was sealed before: the key is there from the first start on, even if
        that start was killed before the seal.
        """
        version, is_sealed = verify(db), _is_sealed(db)
        was_sealed = is_sealed or self.marks.read(MARK) is not None
        is_older = version < len(migrations())
        if is_older and was_sealed and _has_seal(db):
            self.require_true(db)
        migrate_within(db)
        if (is_older and is_sealed) or (not is_sealed and (not was_sealed or _is_empty(db))):
            self.seal.seal(db)

    def find_rewritten(self, db: SqlConnection) -> list[str]:
        """Describe changes made without our key; empty if every row, trigger and index is as we left it."""
        found = self.seal.find_rewritten(db) + find_schema_changes(db)
        sealed, mark = read_seal(db), self.marks.read(MARK) or 0
        if sealed is not None and sealed.counter < mark:
            found.append(f"an older copy of the file: {sealed.counter} transactions of {mark}")
        return found

    def accept(self, db: SqlConnection) -> None:
        """Seal every row as it is now, within the caller's transaction, because a person vouches for it."""
        if isinstance(db, SealedConnection):
            db.changes.forget()
        self.seal.seal(db)
        sealed = read_seal(db)
        self.marks.change(MARK, lambda _: sealed.counter if sealed else 0)

    def check(self) -> None:
        """Check every row on a separate connection. Raises RowsRewritten."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            self.require_true(db)

    def require_true(self, db: SqlConnection) -> None:
        """Raise RowsRewritten if rows were rewritten. From then on, `require_ours` fails too."""
        if found := self.find_rewritten(db):
            self._rewritten = f"{self._path} was rewritten: {'; '.join(found)}"
            log.critical("rows of money were not written by this service", extra={"found": found})
            raise RowsRewritten(
                f"{self._rewritten}. Nothing is sold or signed. Restore a backup (`toolserver db restore`), or, if you"
                " know who wrote and why, accept the rows as they are (`toolserver ledger accept-rows`)."
            )

    def require_ours(self) -> None:
        """Raise StorageFailed if rewritten rows have been found."""
        if self._rewritten is not None:
            raise StorageFailed(self._rewritten)

    def note_progress(self) -> None:
        """Record the database's progress outside it, so that an older copy is recognised."""
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
                sealed = read_seal(db)
            if sealed is not None:
                self.marks.raise_to(MARK, sealed.counter)
        except (sqlite3.Error, OSError, MarksBroken) as error:
            log.warning("the progress of the database could not be recorded", extra={"reason": str(error)})


def read_key(path: Path) -> bytes:
    """Read the key of a seal, and create it if there is none. Raises RowsRewritten if the file has no valid key."""
    if not path.exists():
        text = base64.urlsafe_b64encode(secrets.token_bytes(SIZE)).decode().rstrip("=")
        try:
            write_private(path, json.dumps({"kty": "oct", "k": text}) + "\n", replacing=False)
        except FileExistsError:
            pass  # by another process at the same time
    try:
        key = base64.urlsafe_b64decode(json.loads(path.read_bytes())["k"] + "=")
    except (ValueError, KeyError, TypeError) as error:
        raise RowsRewritten(f"{path} is not the key of a seal: {error}") from None
    if len(key) != SIZE:
        raise RowsRewritten(f"{path} is not the key of a seal: it has {len(key)} bytes")
    return key


def find_schema_changes(db: SqlConnection) -> list[str]:
    """Describe tables, indexes and triggers of money that differ from those of the applied migrations."""
    expected, found = _expected_schema(migrations()[: verify(db)]), _schema(db)
    missing = [f"{name} is missing" for name in expected.keys() - found.keys()]
    added = [f"{name} was added" for name in found.keys() - expected.keys()]
    changed = [f"{name} was changed" for name in expected.keys() & found.keys() if expected[name] != found[name]]
    return sorted(missing + added + changed)


def find_damage(db: SqlConnection, shown: int) -> list[tuple[str, str]]:
    """Return what SQLite itself finds wrong with a file: the broken rule, and where."""
    texts = [text for (text,) in db.execute(f"PRAGMA integrity_check({shown})")]
    lost = [f"{row[0]} to {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    found = [("the file is sound", text) for text in texts if text != "ok"]
    return found + [("references lead somewhere", where) for where in lost]


@functools.lru_cache(maxsize=2)  # a check after each write of another program would otherwise migrate again, in 15 ms
def _expected_schema(steps: tuple[Migration, ...]) -> Mapping[str, str]:
    with closing(sqlite3.connect(":memory:")) as new:
        migrate(new, steps)
        return _schema(new)


def _schema(db: SqlConnection) -> dict[str, str]:
    sql = """SELECT type || ' ' || name, tbl_name, sql FROM sqlite_master
      WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL"""
    return {name: " ".join(text.split()) for name, table, text in db.execute(sql) if table in TABLES}


def _has_seal(db: SqlConnection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name='row_seal'").fetchone() is not None


def _is_sealed(db: SqlConnection) -> bool:
    return _has_seal(db) and read_seal(db) is not None


def _is_current(db: SqlConnection) -> bool:
    """Return True if every migration was applied and the file has a seal."""
    return verify(db) == len(migrations()) and _is_sealed(db)


def _is_empty(db: SqlConnection) -> bool:
    """Return True if nothing was ever bought, called or recorded."""
    tables = ("token", "receipt", "no_charge", "uncharged_call")
    return not any(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in tables)


def is_small(db: SqlConnection) -> bool:
    """Return True if the rows can be checked within the few seconds that a start may take."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM transfer").fetchone()[0]) <= SMALL


def data_version(db: SqlConnection) -> int:
    """Return a number that changes for this connection when another connection has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])
