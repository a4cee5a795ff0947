"""Define the errors of connections and stores, the same for every engine.

A connection raises `DatabaseError` or `TransactionLost`. A store raises `StorageFailed`, whose cause is such an error.
"""

import sqlite3

from toolserver.errors import StorageUnavailable, ToolserverError

RETRY_S = 5
_FILE_ERRORS = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
)


class StorageFailed(StorageUnavailable, abstract=True):
    """The store could not carry out an operation, and nothing was written. The engine's own error is the cause.

    `str()` is the reason, for logs. Callers read `detail`, which names no file.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            "The service cannot read or write its own data at the moment. Nothing was charged.",
            headers={"Retry-After": str(RETRY_S)},
            retry_after_seconds=RETRY_S,
        )
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class StorageClosed(StorageFailed, abstract=True):
    """The store was closed before this could be done."""


class NewerDatabase(ToolserverError):
    """The file was written by a newer version of this software."""


class ForeignDatabase(ToolserverError):
    """The file is a database, but not one of ours."""


class MigrationChanged(ToolserverError):
    """An applied migration differs from our migration with the same number."""


class MigrationPending(ToolserverError):
    """The tables are those of an older version, and only `toolserver migrate` may change them."""


class OtherWorld(ToolserverError):
    """The data directory or database has the other kind of money: real for a simulated service, or the reverse."""


class RowsRewritten(ToolserverError):
    """Another program wrote rows of money. Nothing is signed until a person has checked them."""


class DatabaseError(Exception):
    """The engine could not run a statement. The text is the engine's, and its own error is the cause."""


class ConstraintViolated(DatabaseError):
    """The rows of a statement break a rule of a table."""


class DatabaseUnusable(DatabaseError):
    """The file is locked, full, read-only or unreadable, so that no statement is to blame."""


class OutcomeUnknown(StorageFailed, abstract=True):
    """The connection was lost during a commit, so it is unknown whether the transaction was written."""


class TransactionLost(Exception):
    """A transaction ended for a reason unrelated to its content: it may succeed if it is run again.

    It conflicted with another transaction, or the server was lost before the commit. This never reaches a caller.
    """


def name_error(failure: Exception) -> Exception:
    """Return an error of `sqlite3` as one of this module, with the original as its cause; other exceptions as they are.

    Rows after the first are read by the cursor of `sqlite3` itself, whose errors pass our connection by.
    """
    if not isinstance(failure, sqlite3.Error):
        return failure
    kind = DatabaseError
    if isinstance(failure, sqlite3.IntegrityError):
        kind = ConstraintViolated
    elif getattr(failure, "sqlite_errorcode", 0) & 0xFF in _FILE_ERRORS:
        kind = DatabaseUnusable
    error = kind(str(failure))
    error.__cause__ = failure
    return error
