"""The seal of one ledger file: made when the file is new, kept by every write, checked at the start and on demand."""

import base64
import json
import logging
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from toolserver.core.private_file import write_private
from toolserver.storage.connection import SqlConnection
from toolserver.storage.errors import RowsRewritten, StorageFailed
from toolserver.storage.high_water import HighWater, MarksBroken
from toolserver.storage.migrate import migrate, migrations, verify
from toolserver.storage.row_seal import SIZE, TABLES, RowSeal, SealedConnection, read_seal

log = logging.getLogger(__name__)

KEY = "keys/rows.json"  # below the data directory
SMALL = 300_000  # transfers of a file that is checked before the first request is taken
MARK = "rows"  # among the marks outside: how many transactions were sealed


def open_sealed(db: SealedConnection, path: Path) -> "SealedFile":
    """Migrate the file behind a connection that is to write, and let it keep the seal.

    A new file is sealed as it is, and so is one that was never sealed, or was migrated and had a true seal before.

    Raises:
        RowsRewritten: the seal is not true, and a migration would have made a new one.
        NewerDatabase, ForeignDatabase, MigrationChanged: the file is not ours to write.
    """
    before = verify(db)
    known = (path.parent / KEY).exists()
    file = SealedFile(path)
    migrated = before < len(migrations())
    if migrated and _has_seal(db):
        file.require_true(db)
    migrate(db)
    file.seal.install(db)
    if migrated or _is_empty(db):
        db.execute("BEGIN IMMEDIATE")
        sealed = read_seal(db) is not None
        if (before and migrated and sealed) or (not sealed and (not known or _is_empty(db))):
            file.seal.seal(db)
        db.execute("COMMIT")
    return file


def note_restored(path: Path) -> None:
    """Take a restored backup for the newest state of the file, which it is now. The other marks stay as they are."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        sealed = read_seal(db) if _has_seal(db) else None
    HighWater(path.parent).change(MARK, lambda _: sealed.counter if sealed else 0)


class SealedFile:
    """The seal of a file, its key, and what is known about others who write to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seal = RowSeal(read_key(path.parent / KEY))
        self.marks = HighWater(path.parent)
        self.checked_at: int | None = None  # the `data_version` of the writer at the last check that found nothing
        self._rewritten: str | None = None

    def find_rewritten(self, db: sqlite3.Connection) -> list[str]:
        """What was not written with our key, in words; nothing when every row, trigger and index is as it was left."""
        found = self.seal.find_rewritten(db) + find_schema_changes(db)
        sealed, mark = read_seal(db), self.marks.read(MARK) or 0
        if sealed is not None and sealed.counter < mark:
            found.append(f"an older copy of the file: {sealed.counter} transactions of {mark}")
        return found

    def accept(self, db: sqlite3.Connection) -> None:
        """Seal every row as it is now, within the caller's transaction: a person vouches for it."""
        if isinstance(db, SealedConnection):
            db.changes.forget()
        self.seal.seal(db)
        sealed = read_seal(db)
        self.marks.change(MARK, lambda _: sealed.counter if sealed else 0)

    def check(self) -> None:
        """Read every row on a connection of its own. Raises RowsRewritten."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            self.require_true(db)

    def require_true(self, db: sqlite3.Connection) -> None:
        """Raises RowsRewritten; from then on `require_ours` fails too."""
        if found := self.find_rewritten(db):
            self._rewritten = f"{self._path} was rewritten: {'; '.join(found)}"
            log.critical("rows of money were not written by this service", extra={"found": found})
            raise RowsRewritten(
                f"{self._rewritten}. Nothing is sold or signed. Restore a backup (`toolserver db restore`); or, when"
                " you know who wrote and why, accept what is there (`toolserver ledger accept-rows`)."
            )

    def require_ours(self) -> None:
        """Raises StorageFailed once rewritten rows were found."""
        if self._rewritten is not None:
            raise StorageFailed(self._rewritten)

    def note_progress(self) -> None:
        """Remember outside the database how far it has come, so that an older copy of it is known as one."""
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
                sealed = read_seal(db)
            if sealed is not None:
                self.marks.raise_to(MARK, sealed.counter)
        except (sqlite3.Error, OSError, MarksBroken) as error:
            log.warning("how far the database has come was not noted", extra={"reason": str(error)})


def read_key(path: Path) -> bytes:
    """The key of a seal, which is made if there is none. Raises RowsRewritten: the file holds no key."""
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


def find_schema_changes(db: sqlite3.Connection) -> list[str]:
    """The tables, indexes and triggers of money that are not those of the migrations that were applied, in words."""
    with closing(sqlite3.connect(":memory:")) as new:
        migrate(new, migrations()[: verify(db)])
        expected = _schema(new)
    found = _schema(db)
    missing = [f"{name} is missing" for name in expected.keys() - found.keys()]
    added = [f"{name} was added" for name in found.keys() - expected.keys()]
    changed = [f"{name} was changed" for name in expected.keys() & found.keys() if expected[name] != found[name]]
    return sorted(missing + added + changed)


def find_damage(db: SqlConnection, shown: int) -> list[tuple[str, str]]:
    """What SQLite itself finds wrong with a file: the rule that is broken, and where."""
    texts = [text for (text,) in db.execute(f"PRAGMA integrity_check({shown})")]
    lost = [f"{row[0]} to {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    found = [("the file is sound", text) for text in texts if text != "ok"]
    return found + [("references lead somewhere", where) for where in lost]


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    sql = """SELECT type || ' ' || name, tbl_name, sql FROM sqlite_master
      WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL"""
    return {name: " ".join(text.split()) for name, table, text in db.execute(sql) if table in TABLES}


def _has_seal(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name='row_seal'").fetchone() is not None


def _is_empty(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever bought, called or recorded."""
    tables = ("token", "receipt", "no_charge", "uncharged_call")
    return not any(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in tables)


def is_small(db: sqlite3.Connection) -> bool:
    """Whether the rows are checked within a few seconds, which a start may take."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM transfer").fetchone()[0]) <= SMALL


def data_version(db: sqlite3.Connection) -> int:
    """A number that changes for this connection when another one has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])
