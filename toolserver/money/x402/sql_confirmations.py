"""Stores in the ledger's database what the chain shows of settled payments."""

from functools import partial

from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.purchases.records import PAYMENT_UNDONE, TakeBack
from toolserver.money.x402.records import PaymentPlace, WatchedPayment, describe_request, owner_of
from toolserver.money.x402.sql_store import SqlPaymentStore
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, read_place

_WATCHED = """SELECT p.payload, p.authorizer, p.nonce, p.amount, p.request, coalesce(c.tx_hash, p.tx_hash), p.token,
  p.settled_at, c.agreed_at, c.disputed_since, c.missing_since
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.final_at IS NULL AND c.undone_at IS NULL ORDER BY p.settled_at"""
_CASES = """SELECT CASE WHEN c.undone_at IS NULL THEN 'disputed' ELSE 'undone' END,
  p.tx_hash, p.authorizer, p.amount, p.request, c.lost,
  coalesce(c.undone_at, c.disputed_since)
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.undone_at IS NOT NULL OR c.disputed_since IS NOT NULL"""


class SqlConfirmations(SqlPaymentStore):
    """Implements ConfirmationStore. Every method raises StorageFailed when the database cannot be used."""

    async def list_watched(self) -> list[WatchedPayment]:
        return await self._file.read(lambda db: [WatchedPayment(*row) for row in db.execute(_WATCHED)])

    async def record_place(self, place: PaymentPlace) -> None:
        await self._write(partial(_record_place, place))

    async def record_disputed(self, payload: bytes, now: int) -> None:
        await self._write(partial(_note, "disputed_since", payload, now))

    async def record_missing(self, payload: bytes, now: int) -> None:
        await self._write(partial(_note, "missing_since", payload, now))

    async def undo_payment(self, payload: bytes, now: int) -> tuple[int, int]:
        return await self._write(partial(_undo, payload, now))

    async def is_undone(self, payload: bytes) -> bool:
        sql = "SELECT 1 FROM x402_confirmation WHERE payload=? AND undone_at IS NOT NULL"
        return await self._file.read(lambda db: db.execute(sql, (payload,)).fetchone() is not None)


def read_confirmation_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, _list_cases)


def _list_cases(db: SqlConnection) -> list[ReviewCase]:
    return [ReviewCase(*row)._replace(reason=describe_request(row[4])) for row in db.execute(_CASES)]


def _record_place(place: PaymentPlace, db: SqlConnection) -> None:
    payload, *values = place
    db.execute(
        """UPDATE x402_confirmation SET block_number=?1, block_hash=?2, agreed_at=?3, final_at=?4, missing_since=NULL,
        disputed_since=CASE WHEN CAST(?3 AS bigint) IS NULL OR CAST(?4 AS bigint) IS NULL THEN disputed_since END
        WHERE payload=?5""",
        (*values, payload),
    )


def _note(column: str, payload: bytes, now: int, db: SqlConnection) -> None:
    db.execute(f"UPDATE x402_confirmation SET {column}=coalesce({column}, ?) WHERE payload=?", (now, payload))


def _undo(payload: bytes, now: int, db: SqlConnection) -> tuple[int, int]:
    """Take back only what the payment bought. A token that it did not issue stays valid unless those were spent."""
    sql = """SELECT p.token, coalesce(p.credits, 0), p.request
      FROM x402_payment p JOIN x402_confirmation c USING (payload) WHERE payload=? AND c.undone_at IS NULL"""
    row = db.execute(sql, (payload,)).fetchone()
    if row is None:  # another instance was first
        return 0, 0
    token, credits, request = row
    withdrawal = TakeBack(token, credits, PAYMENT_UNDONE, spares=owner_of(request) is not None)
    taken = int(apply_operation(db, withdrawal, now)) if token else 0
    db.execute(
        "UPDATE x402_confirmation SET undone_at=?, taken_back=?, lost=? WHERE payload=? AND undone_at IS NULL",
        (now, taken, credits - taken, payload),
    )
    return taken, credits - taken
