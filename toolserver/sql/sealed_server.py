"""Check the sealed rows of a database on a server, and keep beside it how far its seals have come.

The rows of a new database are sealed from its first transaction on. Those of an older one are
sealed when an operator accepts them, after every instance writes seals: an instance of a
version before would add rows that no writer has sealed.
"""

import logging
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import (
    ConstraintViolated,
    DatabaseError,
    RowsRewritten,
    StorageFailed,
    TransactionLost,
)
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.row_seal import RowSeal, SealBroken, read_heads, read_seal
from toolserver.sql.seal_marks import SERVER_MARK, SealMark, describe_older, find_mark, note_seals, read_mark
from toolserver.sql.server_seal import (
    BASE,
    begin_snapshot,
    find_rewritten_on_server,
    is_server_sealed,
    merge_seals,
    seal_server,
)

log = logging.getLogger(__name__)

R = TypeVar("R")

SMALL = 50_000  # maximum transfers of a database that is checked before the first request is accepted
NOT_YET = "rows are not sealed yet: when every instance runs this version, run `toolserver ledger accept-rows` once"
NO_KEY = "the key of the seal over rows (rows.json, which `toolserver keys make` makes) is not among the keys here"
_TRIES = 5  # attempts to seal everything, if another process changes seals meanwhile
_LONG = (
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = on"
)
_IS_SMALL = f"SELECT count(*) FROM (SELECT 1 FROM transfer LIMIT {SMALL + 1}) AS few"
_USED = ("ledger_move", "token", "receipt", "packed_receipt", "no_charge", "uncharged_call")


class SealedServer:
    """The seals of a database. Its methods wait for the server, so they run on threads of their own."""

    def __init__(self, terms: PostgresTerms) -> None:
        self._terms = terms
        self._marks = None if terms.data_dir is None else HighWater(terms.data_dir)
        self._rewritten: str | None = None

    def begin(self) -> None:
        """Seal the rows of a new database, unless another instance does it first. Raises DatabaseError."""
        if (key := self._terms.row_key) is None:
            return
        with closing(PostgresConnection(self._terms)) as db:
            if is_server_sealed(db) or any(db.execute(f"SELECT 1 FROM {each} LIMIT 1").fetchone() for each in _USED):
                return
            with suppress(TransactionLost, ConstraintViolated):
                self._seal_all(db, key)

    def find_rewritten(self) -> list[str]:
        """Describe changes made without our key, and say if the database is an older copy; empty if there are none.

        Empty too if rows are not sealed: see `describe_sealing`.
        """
        key = self._terms.row_key
        if key is None:
            return []
        mark = self._read_mark()  # before the snapshot: others write meanwhile, and raise it
        return self._read(lambda db: self._find_rewritten(db, key, mark))

    def describe_sealing(self) -> str | None:
        """Say why rows are not checked; None if they are."""
        if self._terms.row_key is None:
            return NO_KEY
        return None if self._read(lambda db: self._is_sealed(db)) else NOT_YET

    def check_at_start(self) -> None:
        """Check every row unless there are many, and that the database has our key and is no older copy.

        Raises RowsRewritten.
        """
        if (key := self._terms.row_key) is None:
            self._require_none([NO_KEY] if self._read(is_server_sealed) else [])
            return
        is_small = self._read(lambda db: db.execute(_IS_SMALL).fetchone()[0]) <= SMALL
        mark = self._read_mark()
        found = self.find_rewritten() if is_small else self._read(lambda db: self._find_unlike(db, key, mark))
        self._require_none(found)
        self.note_progress()

    def note_progress(self) -> None:
        """Merge seals of writers that are gone, and note outside the database how far its seals have come."""
        if (key := self._terms.row_key) is None:
            return
        try:
            with closing(PostgresConnection(self._terms)) as db:
                db.transact(lambda: merge_seals(db, RowSeal(key)))
            seals = self._read(read_heads)
            if self._marks is not None and seals:
                note_seals(self._marks, find_mark(seals), name=SERVER_MARK)
        except (DatabaseError, TransactionLost, StorageFailed, OSError, MarksBroken) as error:
            log.warning("the progress of the database could not be recorded", extra={"reason": str(error)})

    def accept(self) -> None:
        """Seal every row as it is now, because a person vouches for it. Others may write meanwhile.

        Raises StorageFailed if this process has no key, or the server cannot be used.
        """
        if (key := self._terms.row_key) is None:
            raise StorageFailed(NO_KEY)
        with closing(PostgresConnection(self._terms)) as db:
            for tried in range(1, _TRIES + 1):
                try:
                    self._seal_all(db, key)
                    break
                except (DatabaseError, TransactionLost) as error:
                    if tried == _TRIES:
                        raise StorageFailed(f"the rows could not be sealed: {error}") from error
        if self._marks is not None:
            note_seals(self._marks, find_mark(self._read(read_heads)), name=SERVER_MARK, lower=True)

    def require_ours(self) -> None:
        """Raise StorageFailed if rewritten rows have been found."""
        if self._rewritten is not None:
            raise StorageFailed(self._rewritten)

    def _seal_all(self, db: PostgresConnection, key: bytes) -> None:
        begin_snapshot(db)
        try:
            db.run_script(_LONG)
            seal_server(db, RowSeal(key))
        except BaseException:
            db.rollback()
            raise
        db.commit()

    def _find_rewritten(self, db: SqlConnection, key: bytes, mark: SealMark | None) -> list[str]:
        if not self._is_sealed(db):
            return []
        return [*find_rewritten_on_server(db, key), *_find_older(db, mark)]

    def _is_sealed(self, db: SqlConnection) -> bool:
        return is_server_sealed(db) or self._read_mark() is not None

    def _find_unlike(self, db: SqlConnection, key: bytes, mark: SealMark | None) -> list[str]:
        """Say without reading the rows if the seals are of another key, or older than the marks."""
        base = read_seal(db, BASE)
        try:
            if base is not None:
                RowSeal(key).open(base)
        except SealBroken as error:
            return [str(error)]
        return _find_older(db, mark)

    def _read_mark(self) -> SealMark | None:
        return None if self._marks is None else read_mark(self._marks, SERVER_MARK)

    def _require_none(self, changes: list[str]) -> None:
        if changes:
            self._rewritten = f"the database was rewritten: {'; '.join(changes)}"
            log.critical("rows of money were not written by this service", extra={"found": changes})
            raise RowsRewritten(
                f"{self._rewritten}. Nothing is sold or signed. Restore a backup, or, if you know who wrote and why,"
                " accept the rows as they are (`toolserver ledger accept-rows`)."
            )

    def _read(self, job: Callable[[SqlConnection], R]) -> R:
        with closing(PostgresConnection(self._terms)) as db:
            try:
                db.begin(read_only=True)
                db.run_script(_LONG)
                return job(db)
            except (DatabaseError, TransactionLost) as error:
                raise StorageFailed(str(error)) from error


def _find_older(db: SqlConnection, mark: SealMark | None) -> list[str]:
    return describe_older(find_mark(read_heads(db)), mark, "the database")
