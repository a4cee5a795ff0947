"""Check the seal of versions before `writer_seal`: an older file is checked by it once, and then sealed anew.

Each table had a sum: the keyed hashes of all its rows, added modulo 2**256. The sums are stored
masked and authenticated.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from toolserver.sql.connection import SqlConnection
from toolserver.sql.row_seal import TABLES

OLD_TABLES = TABLES[: TABLES.index("removed_name") + 1]  # in the order of their sums
SIZE = 32  # bytes in a hash and in a sum
_MODULUS = 1 << 8 * SIZE
_encode = msgspec.msgpack.Encoder().encode


class OldSeal(NamedTuple):
    """The stored seal: how many transactions were sealed, and the masked sums with their authentication."""

    counter: int
    nonce: bytes
    sums: bytes
    mac: bytes


class OldRowSeal:
    """Checks the old seal of a file with the key of 32 bytes that made it."""

    def __init__(self, key: bytes) -> None:
        row_key, self._mask_key, self._mac_key = (
            hashlib.blake2b(use, key=key, digest_size=SIZE).digest() for use in (b"row", b"mask", b"mac")
        )
        self._new_row = hashlib.blake2b(key=row_key, digest_size=SIZE)

    def find_rewritten(self, db: SqlConnection) -> list[str]:
        """Name the tables that differ from what was sealed; empty if none do."""
        seal = read_old_seal(db)
        if seal is None:
            return ["the seal is missing"]
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        tables = [table for table in OLD_TABLES if table in there]
        if not self._is_ours(seal, len(tables)):
            return ["the seal was not made with the key of this data directory"]
        pairs = zip(tables, self._unmask(seal), strict=True)
        return [table for table, sealed in pairs if self._sum(db, table) != sealed]

    def _sum(self, db: SqlConnection, table: str) -> int:
        number = OLD_TABLES.index(table)
        return sum(self._hash(number, row) for row in db.execute(f"SELECT * FROM main.{table}")) % _MODULUS

    def _hash(self, number: int, row: Sequence[Any]) -> int:
        hashed = self._new_row.copy()
        hashed.update(_encode((number, row)))
        return int.from_bytes(hashed.digest())

    def _is_ours(self, seal: OldSeal, tables: int) -> bool:
        text = seal.counter.to_bytes(8) + seal.nonce + seal.sums
        mac = hashlib.blake2b(text, key=self._mac_key, digest_size=SIZE).digest()
        return len(seal.sums) == SIZE * tables and hmac.compare_digest(seal.mac, mac)

    def _unmask(self, seal: OldSeal) -> list[int]:
        parts = (seal.sums[at : at + SIZE] for at in range(0, len(seal.sums), SIZE))
        return [(int.from_bytes(part) - self._mask(seal.nonce, number)) % _MODULUS for number, part in enumerate(parts)]

    def _mask(self, nonce: bytes, number: int) -> int:
        text = nonce + bytes([number])
        return int.from_bytes(hashlib.blake2b(text, key=self._mask_key, digest_size=SIZE).digest())


def read_old_seal(db: SqlConnection) -> OldSeal | None:
    """Read the seal of an older version; None if there is none."""
    row = db.execute("SELECT counter, nonce, sums, mac FROM row_seal").fetchone()
    return OldSeal(*row) if row else None
