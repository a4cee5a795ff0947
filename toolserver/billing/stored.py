"""Receipts in the ledger's file."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from toolserver.billing.receipts import Sale, compact, shown
from toolserver.storage.rows import insert

_COLUMNS = "id, owner, core, key, jws_signature, signature, at"


class Stored(NamedTuple):
    """A receipt as it is kept: `core` and what is signed over it, with the name of the key."""

    id: str
    owner: str
    core: bytes
    key: str
    jws_signature: bytes
    signature: bytes
    at: int

    @property
    def jws(self) -> str:
        return compact(self.key, self.core, self.jws_signature)

    @property
    def shown(self) -> dict[str, Any]:
        return shown(msgspec.json.decode(self.core), self.key, self.signature)

    def fits(self, sale: Sale) -> bool:
        """Whether it is about the answer of this sale, and not about one that was made for the same call before."""
        about = msgspec.json.decode(self.core)["response_sha256"]
        return bool(about == (sale.body.sha256 if sale.body else None))


def found(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Stored]:
    """The receipts of these ids that there are."""
    sql = f"SELECT {_COLUMNS} FROM receipt WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0]: Stored(*row) for row in db.execute(sql, (msgspec.json.encode(ids).decode(),))}


def one(db: sqlite3.Connection, id: str) -> Stored | None:
    """A receipt by its id."""
    row = db.execute(f"SELECT {_COLUMNS} FROM receipt WHERE id=?", (id,)).fetchone()
    return Stored(*row) if row else None


def store(db: sqlite3.Connection, receipts: Sequence[Stored]) -> None:
    """Keep new ones."""
    insert(db, f"INSERT INTO receipt({_COLUMNS}) VALUES", receipts)
