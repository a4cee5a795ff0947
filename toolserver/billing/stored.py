"""Receipts in the ledger's file."""

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from toolserver.billing.keys import Key
from toolserver.billing.receipts import Sale, compact, shown
from toolserver.storage.rows import insert

_COLUMNS = "id, owner, core, key, signature, at"


class Stored(NamedTuple):
    """A receipt as it is kept: `core` and the JWS's signature over it, with the name of the key."""

    id: str
    owner: str
    core: bytes
    key: str
    signature: bytes
    at: int

    @property
    def jws(self) -> str:
        return compact(self.key, self.core, self.signature)

    def shown(self, key: Key | None) -> dict[str, Any]:
        """The core as an object, signed over its own bytes where the key that signed it can still sign."""
        core = msgspec.json.decode(self.core)
        return core if key is None or key.seed is None else shown(core, self.key, key.sign(self.core))

    def fits(self, sale: Sale) -> bool:
        """Whether it tells of this sale, and not of another answer to the same call or of a charge since reversed."""
        about = msgspec.json.decode(self.core)
        charged = 0 if sale.pending else sale.charged
        body = sale.body.sha256 if sale.body else None
        return bool(about["response_sha256"] == body and about["credits_charged"] == charged)


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
