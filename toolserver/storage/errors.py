"""What can go wrong with a store, in words that are the same for every engine."""

from toolserver.errors import StorageUnavailable, ToolserverError

RETRY_S = 5


class StorageFailed(StorageUnavailable, abstract=True):
    """The store could not do what it was asked, and nothing was written. The engine's own error is the cause.

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
    """A migration that was applied is not the one we have under its number."""


class OtherWorld(ToolserverError):
    """The data directory or database holds money of the other kind: real where a simulation was to run, or reversed."""


class RowsRewritten(ToolserverError):
    """Rows of money were written by something else than this service. Nothing is signed until a person has looked."""


class OutcomeUnknown(StorageFailed, abstract=True):
    """The connection was lost while a transaction was committed: it was written, or it was not."""


class TransactionLost(Exception):
    """A transaction ended for a reason that has nothing to do with what it did: run again, it may well succeed.

    Another transaction stood in its way, or the server went away before it could commit. It never reaches a caller.
    """
