"""Allow only one serving process per data directory whose ledger is a file: two would each assume they own it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolserver.serving.money import keeps_books
from toolserver.settings import Settings


@contextmanager
def hold_directory(settings: Settings) -> Iterator[None]:
    """Hold the exclusive right to serve from the data directory while the block runs, if it has a ledger's file.

    The lock belongs to the operating system and ends with the process, however that ends. Raises SystemExit if another
    process serves from the directory, and says what to set.
    """
    if settings.database_url is not None or os.name == "nt" or not keeps_books(settings):
        yield
        return
    handle = os.open(settings.data_dir, os.O_RDONLY)
    try:
        _lock(handle, settings.data_dir)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(
            f"another process serves from {folder}, and with SQLite, one process owns the data. For several, set"
            " database_url (TOOLSERVER_DATABASE_URL) and redis_url (TOOLSERVER_REDIS_URL), or give this one its"
            " own data directory (TOOLSERVER_DATA_DIR)"
        ) from None
