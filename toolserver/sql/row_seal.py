"""Seal the rows of every table of money, so that rows written without the key are found.

Anyone who can write to the file can drop triggers and make all tables agree with each other. So each table has a sum:
the keyed hashes of all its rows, added modulo 2**256. The sum changes with any row that is added, removed, changed or
moved to another key, and can be updated row by row. The sums are stored masked and authenticated, because other rows
with the same sum could be computed from the hashes of many rows. The key is in a file beside the database.

Temporary triggers count every change. They belong to our own connection, so nobody else can
drop them. Their counts are kept in memory (a table for them would cost 14 us a row) and are
rolled back with the transaction or savepoint. A file that was replaced completely by an older
copy has a valid seal; `high_water` finds that.
"""

import base64
import functools
import hashlib
import hmac
import json
import logging
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolserver.core.private_file import write_private
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated, RowsRewritten, StorageFailed, name_error
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.migrate import Migration, migrate, migrate_within, migrations, verify, write_transaction

log = logging.getLogger(__name__)

TABLES = (
    *("account", "token", "transfer", "reservation", "allowance", "journal"),
    *("receipt", "no_charge", "log_node", "log_checkpoint", "no_charge_day"),
    *("purchase", "tx_credit", "tx_reversal", "unapplied_payment", "payment_review"),
    *("x402_payment", "x402_confirmation", "sweep"),
    *("old_quote", "refund", "reissue"),
    "uncharged_call",
    *("closed_month", "removed_calls"),
    *("owner_limits", "quote_limit"),
    "quote_topup",
    *("receipt_form", "packed_receipt", "removed_name"),
)
"""In the order of their sums. A migration that adds a table of money appends it; the file is then sealed again."""
SIZE = 32  # bytes in a hash and in a sum
_MODULUS = 1 << 8 * SIZE

_encode = msgspec.msgpack.Encoder().encode
KEY = "keys/rows.json"  # below the data directory
SMALL = 300_000  # maximum transfers of a file that is checked before the first request is accepted
MARK = "rows"  # the outside mark for how many transactions were sealed


class Seal(NamedTuple):
    """The stored seal: how many transactions were sealed, and the masked sums with their authentication."""

    counter: int
    nonce: bytes
    sums: bytes
    mac: bytes


class RowSeal:
    """Keeps and checks the seal with one key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        row_key, self._mask_key, self._mac_key = (
            hashlib.blake2b(use, key=key, digest_size=SIZE).digest() for use in (b"row", b"mask", b"mac")
        )
        # Copied for each row, because creating one takes longer than hashing.
        self._new_row = hashlib.blake2b(key=row_key, digest_size=SIZE)
        self._masks = lru_cache(maxsize=2)(self._make_masks)  # the next commit removes the masks of the one before

    def install(self, db: "SealedConnection") -> None:
        """Make a writing connection count its changes."""
        db.create_function("count_change", -1, partial(self._count, db.changes))
        db.execute("PRAGMA recursive_triggers=ON")  # a replaced row counts as deleted, and is refused like a deletion
        for number, table in enumerate(TABLES):
            for statement in _triggers(number, table, _columns(db, table)):
                db.execute(statement)
        db.seal = self

    def fold(self, db: SqlConnection, changes: "RowChanges") -> None:
        """Seal the changes of a transaction at its end. Raises SealBroken if the previous seal is not ours."""
        if not any(changes.sums):
            return
        before = read_seal(db)
        if before is None or not self._is_ours(before, len(TABLES)):
            raise SealBroken("the seal of the database was not made with our key")
        sums = [(old + new) % _MODULUS for old, new in zip(self._unmask(before), changes.sums, strict=True)]
        self._store(db, sums, before.counter + 1)

    def seal(self, db: SqlConnection) -> None:
        """Seal every row as it is now, within the caller's transaction, for a new or migrated file."""
        before = read_seal(db)
        self._store(db, [self._sum(db, table) for table in TABLES], before.counter + 1 if before else 1)

    def find_rewritten(self, db: SqlConnection) -> list[str]:
        """Describe the tables that differ from what was sealed; empty if none do."""
        seal = read_seal(db)
        if seal is None:
            return ["the seal is missing"]
        tables = _list_sealed(db)
        if not self._is_ours(seal, len(tables)):
            return ["the seal was not made with the key of this data directory"]
        pairs = zip(tables, self._unmask(seal), strict=True)
        return [table for table, sealed in pairs if self._sum(db, table) != sealed]

    def _count(self, changes: "RowChanges", number: int, removed: int, *values: Any) -> None:
        """Count a removed row of `removed` columns, and an added row of the other values, if any."""
        if removed:
            changes.sums[number] -= self._hash(number, values[:removed])
        if removed < len(values):
            changes.sums[number] += self._hash(number, values[removed:])

    def _hash(self, number: int, row: Sequence[Any]) -> int:
        hashed = self._new_row.copy()
        hashed.update(_encode((number, row)))
        return int.from_bytes(hashed.digest())

    def _sum(self, db: SqlConnection, table: str) -> int:
        number = TABLES.index(table)
        rows = db.execute(f"SELECT {', '.join(_columns(db, table))} FROM main.{table}")
        return sum(self._hash(number, row) for row in rows) % _MODULUS

    def _store(self, db: SqlConnection, sums: Sequence[int], counter: int) -> None:
        nonce = secrets.token_bytes(16)
        pairs = zip(sums, self._masks(nonce), strict=True)
        masked = b"".join(((plain + mask) % _MODULUS).to_bytes(SIZE) for plain, mask in pairs)
        row = Seal(counter, nonce, masked, self._mac(counter, nonce, masked))
        columns = "counter=excluded.counter, nonce=excluded.nonce, sums=excluded.sums, mac=excluded.mac"
        db.execute(f"INSERT INTO row_seal VALUES(1,?,?,?,?) ON CONFLICT(one) DO UPDATE SET {columns}", row)

    def _is_ours(self, seal: Seal, tables: int) -> bool:
        sized = len(seal.sums) == SIZE * tables
        return sized and hmac.compare_digest(seal.mac, self._mac(seal.counter, seal.nonce, seal.sums))

    def _unmask(self, seal: Seal) -> list[int]:
        parts = (seal.sums[at : at + SIZE] for at in range(0, len(seal.sums), SIZE))
        pairs = zip(parts, self._masks(seal.nonce), strict=False)  # before a migration there are fewer sums
        return [(int.from_bytes(part) - mask) % _MODULUS for part, mask in pairs]

    def _make_masks(self, nonce: bytes) -> list[int]:
        texts = (nonce + bytes([number]) for number in range(len(TABLES)))
        return [int.from_bytes(hashlib.blake2b(text, key=self._mask_key, digest_size=SIZE).digest()) for text in texts]

    def _mac(self, counter: int, nonce: bytes, sums: bytes) -> bytes:
        text = counter.to_bytes(8) + nonce + sums
        return hashlib.blake2b(text, key=self._mac_key, digest_size=SIZE).digest()


class RowChanges:
    """The changes of a transaction so far: for each table, the added hashes minus the removed ones."""

    def __init__(self) -> None:
        self.sums = [0] * len(TABLES)

    def forget(self) -> None:
        """Start again after the transaction ended, one way or the other."""
        self.sums[:] = bytes(len(TABLES))

    def restore(self, sums: Sequence[int]) -> None:
        """Restore a copy of `sums`, as the rows were rolled back to a savepoint."""
        self.sums[:] = sums


class SealedConnection(sqlite3.Connection):
    """A connection to a ledger's file: it raises the errors of `sql.errors`, and counts its changes for a `RowSeal`."""

    seal: RowSeal | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.changes = RowChanges()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement. Raises DatabaseError."""
        try:
            return super().execute(sql, parameters)
        except sqlite3.Error as error:
            raise name_error(error) from error


def seal_changes(db: SqlConnection) -> None:
    """Seal the changes of a transaction at its end, if the connection counts them. Raises SealBroken."""
    if isinstance(db, SealedConnection) and db.seal is not None:
        db.seal.fold(db, db.changes)


class SealBroken(ConstraintViolated):
    """Another program wrote the seal. The transaction is not committed."""


def read_seal(db: SqlConnection) -> Seal | None:
    """Read the stored seal; None if there is none."""
    row = db.execute("SELECT counter, nonce, sums, mac FROM row_seal").fetchone()
    return Seal(*row) if row else None


def _list_sealed(db: SqlConnection) -> Sequence[str]:
    """List the tables that this file's seal covers: all, or those that existed before pending migrations."""
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    return [table for table in TABLES if table in there]


def _columns(db: SqlConnection, table: str) -> list[str]:
    return [f'"{name}"' for (name,) in db.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]


def _triggers(number: int, table: str, columns: Sequence[str]) -> Iterator[str]:
    old, new = (", ".join(f"{which}.{column}" for column in columns) for which in ("OLD", "NEW"))
    for event, removed, row in (
        ("INSERT", 0, new),
        ("DELETE", len(columns), old),
        ("UPDATE", len(columns), f"{old}, {new}"),
    ):
        yield f"""CREATE TEMP TRIGGER count_{table}_{event.lower()} AFTER {event} ON main.{table}
          BEGIN SELECT count_change({number}, {removed}, {row}); END"""


def open_sealed(db: SealedConnection, path: Path) -> "SealedFile":
    """Migrate the file behind a writing connection, and make the connection update the seal.

    A file is sealed as it is if it is new, was never sealed, or was migrated and had a valid
    seal before. Migrations and seal are one transaction: a process that is killed leaves the
    file as it was, and the next start does it all.

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

        Only the mark outside the file says that it was sealed before: the key is there from
        the first start on, even if that start was killed before the seal.
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
        changes = self.seal.find_rewritten(db) + find_schema_changes(db)
        sealed, mark = read_seal(db), self.marks.read(MARK) or 0
        if sealed is not None and sealed.counter < mark:
            changes.append(f"an older copy of the file: {sealed.counter} transactions of {mark}")
        return changes

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
        if changes := self.find_rewritten(db):
            self._rewritten = f"{self._path} was rewritten: {'; '.join(changes)}"
            log.critical("rows of money were not written by this service", extra={"found": changes})
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
    expected, actual = _expected_schema(migrations()[: verify(db)]), _schema(db)
    missing = [f"{name} is missing" for name in expected.keys() - actual.keys()]
    added = [f"{name} was added" for name in actual.keys() - expected.keys()]
    changed = [f"{name} was changed" for name in expected.keys() & actual.keys() if expected[name] != actual[name]]
    return sorted(missing + added + changed)


def find_damage(db: SqlConnection, shown: int) -> list[tuple[str, str]]:
    """Return what SQLite itself finds wrong with a file: the broken rule, and where."""
    texts = [text for (text,) in db.execute(f"PRAGMA integrity_check({shown})")]
    lost = [f"{row[0]} to {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    problems = [("the file is sound", text) for text in texts if text != "ok"]
    return problems + [("references lead somewhere", where) for where in lost]


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
    tables = ("token", "receipt", "packed_receipt", "no_charge", "uncharged_call")
    return not any(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in tables)


def is_small(db: SqlConnection) -> bool:
    """Return True if the rows can be checked within the few seconds that a start may take."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM transfer").fetchone()[0]) <= SMALL


def data_version(db: SqlConnection) -> int:
    """Return a number that changes for this connection when another connection has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])
