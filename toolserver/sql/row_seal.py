"""Seal the rows of every table of money, so that rows written without the key are found.

Anyone who can write to the file can drop triggers and make all tables agree with each other. So each table has a sum:
the keyed hashes of all its rows, added modulo 2**256. The sum changes with any row that is added, removed, changed or
moved to another key, and can be updated row by row. The sums are stored masked and authenticated, because other rows
with the same sum could be computed from the hashes of many rows. The key is in a file beside the database.

Temporary triggers count every change. They belong to our own connection, so nobody else can drop them. Their counts
are kept in memory (a table for them would cost 14 us a row) and are rolled back with the transaction or savepoint. A
file that was replaced completely by an older copy has a valid seal; `high_water` finds that.
"""

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated, name_error

TABLES = (
    *("account", "token", "transfer", "reservation", "allowance", "journal"),
    *("receipt", "no_charge", "log_node", "log_checkpoint", "no_charge_day"),
    *("purchase", "tx_credit", "tx_reversal", "unapplied_payment", "payment_review"),
    *("x402_payment", "x402_confirmation", "sweep"),
    *("old_quote", "refund", "reissue"),
    "uncharged_call",
    *("closed_month", "removed_calls"),
)
"""In the order of their sums. A migration that adds a table of money appends it; the file is then sealed again."""
SIZE = 32  # bytes in a hash and in a sum
_MODULUS = 1 << 8 * SIZE

_encode = msgspec.msgpack.Encoder().encode


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
        found = read_seal(db)
        if found is None:
            return ["the seal is missing"]
        tables = _list_sealed(db)
        if not self._is_ours(found, len(tables)):
            return ["the seal was not made with the key of this data directory"]
        pairs = zip(tables, self._unmask(found), strict=True)
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

    def _is_ours(self, found: Seal, tables: int) -> bool:
        sized = len(found.sums) == SIZE * tables
        return sized and hmac.compare_digest(found.mac, self._mac(found.counter, found.nonce, found.sums))

    def _unmask(self, found: Seal) -> list[int]:
        parts = (found.sums[at : at + SIZE] for at in range(0, len(found.sums), SIZE))
        pairs = zip(parts, self._masks(found.nonce), strict=False)  # before a migration there are fewer sums
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
