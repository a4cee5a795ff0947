"""Mark a data directory while a process serves from it: a lock, and two notes that `doctor`, another process, reads.

Only one serving process is allowed per data directory whose ledger is a file: two would each
assume they own it. The note of a running service says where its metrics are. It is written
when the service is ready and removed when it stops; if a service is killed, its note stays,
and nothing answers at the recorded address. The other note records an untrusted peer that
sends X-Forwarded-For: most likely the operator's own proxy, which is not configured, so that
all callers share the proxy's address and so one client's limits.
"""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolserver.core.private_file import write_private
from toolserver.serving.money import keeps_books
from toolserver.settings import Settings

log = logging.getLogger(__name__)

RUNNING, UNTRUSTED_PROXY = "running.json", "untrusted-proxy.json"


@contextmanager
def hold_directory(settings: Settings) -> Iterator[None]:
    """Hold the exclusive right to serve from the data directory while the block runs, if it has a ledger's file.

    The lock belongs to the operating system and ends with the process, however that ends.
    Raises SystemExit if another process serves from the directory, and says what to set.
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


@contextmanager
def note_running(folder: Path, metrics_url: str | None) -> Iterator[None]:
    """Keep the note while the block runs. There is none without metrics, or if it cannot be written."""
    path = folder / RUNNING
    if metrics_url is not None:
        try:
            write_private(path, json.dumps({"metrics_url": metrics_url}) + "\n")
        except OSError as error:
            log.warning("the address of the running service could not be recorded", extra={"error": str(error)})
    try:
        yield
    finally:
        if read_running(folder) == metrics_url:  # another process may have taken over the directory
            path.unlink(missing_ok=True)


def read_running(folder: Path) -> str | None:
    """Return the metrics address in a data directory's note; None if there is no readable note."""
    return _read_note(folder / RUNNING, "metrics_url")


class UntrustedProxyNote:
    """Writes one log line and one file, at the first such request of this process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / UNTRUSTED_PROXY
        self._noted = False

    def note(self, peer: str) -> None:
        """Note the address that sent the header."""
        if self._noted:
            return
        self._noted = True
        log.warning("ignored X-Forwarded-For from an untrusted peer", extra={"peer": peer})
        try:
            write_private(self._path, json.dumps({"peer": peer}) + "\n")
        except OSError as error:
            log.warning("the untrusted proxy could not be recorded", extra={"error": str(error)})


def read_untrusted_proxy(folder: Path) -> str | None:
    """Return the address in a data directory's note; None if there is no readable note."""
    return _read_note(folder / UNTRUSTED_PROXY, "peer")


def _read_note(path: Path, member: str) -> str | None:
    """Return a text member of a note; None if there is no readable note with one."""
    try:
        note = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    text = note.get(member) if isinstance(note, dict) else None
    return text if isinstance(text, str) else None
