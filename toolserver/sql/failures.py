"""Turn an exception that ends a program into one line for a person: cause, setting and remedy.

Every verb of the command line and the start of the service end through `explain`. Errors of
this package are sentences already; errors of the operating system and of SQLite become
sentences here. Anything else is a fault of the program: the person reads one line, and the
traceback is in the log if its lines are JSON, as they are where no terminal reads them. On a
terminal, `toolserver --traceback …` or the setting `logs.level = "debug"` shows it.
"""

import errno
import logging
import sqlite3
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from toolserver.core.logging import JsonLines, hidden
from toolserver.errors import ToolserverError
from toolserver.sql.errors import DatabaseError

log = logging.getLogger(__name__)

show_tracebacks: ContextVar[bool] = ContextVar("show_tracebacks", default=False)
DATA_DIR = "data_dir (TOOLSERVER_DATA_DIR or --data-dir)"

# Cause and remedy. The path stands before, the setting after.
_OF_SYSTEM = {
    errno.EACCES: ("permission denied", "let the user that runs toolserver read and write it"),
    errno.EPERM: ("the system does not permit it", "let the user that runs toolserver read and write it"),
    errno.EROFS: ("the disk is read-only", "make it writable"),
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.ENOENT: ("there is no such file or folder", "create it, or correct the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", "move that file away"),
    errno.EEXIST: ("it is a file, not a directory", "move the file away"),
    errno.EISDIR: ("it is a directory, not a file", "move the directory away"),
    errno.EMFILE: ("too many files are open", "raise the limit (`ulimit -n`)"),
    errno.EIO: ("the disk has an error", "check the disk"),
}
_OF_SQLITE = {
    "unable to open database file": ("it cannot be opened", "let the user that runs toolserver read and write it"),
    "attempt to write a readonly database": _OF_SYSTEM[errno.EROFS],
    "database or disk is full": _OF_SYSTEM[errno.ENOSPC],
    "disk I/O error": ("the disk has an error or is full", "check the disk"),
    "file is not a database": ("it is not a database", "restore a backup (`toolserver db restore`)"),
    "database disk image is malformed": ("it is damaged", "restore a backup (`toolserver db restore`)"),
    "database is locked": ("another process is writing to it", "wait for it, or stop it"),
}
_OF_THE_FILE = ("file is not a database", "database disk image is malformed", "database is locked")


def explain(error: BaseException) -> str:
    """Return one line for a person about an error that ends a program, and log its traceback if it is a fault."""
    leaves = list(list_causes(error))
    described = [text for text in map(describe_failure, leaves) if text is not None]
    faults = [leaf for leaf in leaves if describe_failure(leaf) is None]
    for fault in faults:
        log.log(logging.ERROR if _logs_tracebacks() else logging.DEBUG, "a fault of the program", exc_info=fault)
    if described:
        log.debug("what ended the program", exc_info=error)
        return described[0]
    name = f"{type(faults[0]).__name__}: {faults[0]}" if str(faults[0]) else type(faults[0]).__name__
    return _on_one_line(f"a fault of the program: {name}. `toolserver --traceback …` shows where; please report it")


def describe_failure(error: BaseException) -> str | None:
    """Return an expected error in one line; None if it is a fault of the program."""
    if isinstance(error, ToolserverError):
        return _on_one_line(str(error))
    if isinstance(error, OSError):
        return _on_one_line(describe_disk_error(error, error.filename))
    if isinstance(error, sqlite3.Error | DatabaseError) and str(error) in _OF_SQLITE:
        return describe_disk_error(error, None)
    return None


def describe_disk_error(
    error: OSError | sqlite3.Error | DatabaseError, path: Path | str | None, setting: str | None = None
) -> str:
    """Say what is wrong with a file or folder, and what to do. `setting` names what can point to another place."""
    if isinstance(error, OSError):
        cause, remedy = _OF_SYSTEM.get(error.errno or 0, (error.strerror or str(error), ""))
    else:
        cause, remedy = _OF_SQLITE.get(str(error), (str(error), ""))
        if path is not None and Path(path).is_dir():
            cause, remedy = _OF_SYSTEM[errno.EISDIR]
    place = f"{path}: " if path is not None else ""
    elsewhere = f"set {setting} to another place" if setting and str(error) not in _OF_THE_FILE else ""
    advice = ", or ".join(filter(None, (remedy, elsewhere)))
    return f"{place}{cause}{f'; {advice}' if advice else ''}"


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that task groups have wrapped, or the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from list_causes(each)


def find_exit(error: BaseException) -> SystemExit | None:
    """Return the SystemExit that task groups have wrapped, or None if there is none."""
    return next((each for each in list_causes(error) if isinstance(each, SystemExit)), None)


def _logs_tracebacks() -> bool:
    return show_tracebacks.get() or any(isinstance(each.formatter, JsonLines) for each in logging.getLogger().handlers)


def _on_one_line(text: str) -> str:
    return hidden(" ".join(text.split()))
