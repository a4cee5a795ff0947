"""What the chain says of settled payments, in the ledger's SQLite file."""

import sqlite3
from functools import partial
from pathlib import Path

from toolserver.ledger.sqlite_tables import apply_operation
from toolserver.purchases.manual_review import ReviewCase
from toolserver.purchases.sqlite_store import report_unreadable
from toolserver.purchases.store_rules import PAYMENT_UNDONE, TakeBack
from toolserver.storage.group_commit import GroupCommit, snapshot
from toolserver.x402.finality import PaymentPlace, WatchedPayment
from toolserver.x402.sqlite_store import SqlitePaymentStore
from toolserver.x402.store import describe_request
from toolserver.x402.topup_owner import owner_of

_WATCHED = """SELECT p.payload, p.authorizer, p.nonce, p.amount, p.request, coalesce(c.tx_hash, p.tx_hash), p.token,
  p.settled_at, c.agreed_at, c.disputed_since, c.missing_since
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.final_at IS NULL AND c.undone_at IS NULL ORDER BY p.settled_at"""
_CASES = """SELECT iif(c.undone_at IS NULL, 'disputed', 'undone'), p.tx_hash, p.authorizer, p.amount, p.request, c.lost,
  coalesce(c.undone_at, c.disputed_since)
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.undone_at IS NOT NULL OR c.disputed_since IS NOT NULL"""


class SqliteConfirmations(SqlitePaymentStore):
    """See ConfirmationStore. Every method raises StorageFailed when the file cannot be used."""

    def __init__(self, file: GroupCommit) -> None:
        super().__init__(file)
        self._rows = file

    async def list_watched(self) -> list[WatchedPayment]:
        return await self._rows.read(lambda db: [WatchedPayment(*row) for row in db.execute(_WATCHED)])

    async def record_place(self, place: PaymentPlace) -> None:
        await self._rows.alone(partial(_record_place, place))

    async def record_disputed(self, payload: bytes, now: int) -> None:
        await self._rows.alone(partial(_note, "disputed_since", payload, now))

    async def record_missing(self, payload: bytes, now: int) -> None:
        await self._rows.alone(partial(_note, "missing_since", payload, now))

    async def undo_payment(self, payload: bytes, now: int) -> tuple[int, int]:
        return await self._rows.alone(partial(_undo, payload, now))

    async def is_undone(self, payload: bytes) -> bool:
        sql = "SELECT 1 FROM x402_confirmation WHERE payload=? AND undone_at IS NOT NULL"
        return await self._rows.read(lambda db: db.execute(sql, (payload,)).fetchone() is not None)


def read_confirmation_cases(path: Path) -> list[ReviewCase]:
    """The cases in a file, even while a service has it open. Raises StorageFailed."""
    with report_unreadable():
        return snapshot(path, _list_cases)


def _list_cases(db: sqlite3.Connection) -> list[ReviewCase]:
    return [ReviewCase(*row)._replace(reason=describe_request(row[4])) for row in db.execute(_CASES)]


def _record_place(place: PaymentPlace, db: sqlite3.Connection) -> None:
    payload, *values = place
    db.execute(
        """UPDATE x402_confirmation SET block_number=?, block_hash=?, agreed_at=?, final_at=?, missing_since=NULL,
        disputed_since=iif(?3 IS NULL OR ?4 IS NULL, disputed_since, NULL) WHERE payload=?5""",
        (*values, payload),
    )


def _note(column: str, payload: bytes, now: int, db: sqlite3.Connection) -> None:
    db.execute(f"UPDATE x402_confirmation SET {column}=coalesce({column}, ?) WHERE payload=?", (now, payload))


def _undo(payload: bytes, now: int, db: sqlite3.Connection) -> tuple[int, int]:
    """Only what the payment bought is taken back: a token that it did not issue stays valid unless that was spent."""
    sql = "SELECT token, coalesce(credits, 0), request FROM x402_payment WHERE payload=?"
    token, credits, request = db.execute(sql, (payload,)).fetchone()
    withdrawal = TakeBack(token, credits, PAYMENT_UNDONE, spares=owner_of(request) is not None)
    taken = int(apply_operation(db, withdrawal, now)) if token else 0
    db.execute(
        "UPDATE x402_confirmation SET undone_at=?, taken_back=?, lost=? WHERE payload=? AND undone_at IS NULL",
        (now, taken, credits - taken, payload),
    )
    return taken, credits - taken
