"""What ends a program is one line: cause, setting and remedy. The traceback of a fault of ours is kept."""

import errno
import logging
import os
import sqlite3

import pytest

from toolserver.core.logging import JsonLines
from toolserver.errors import ToolserverError
from toolserver.sql.failures import DATA_DIR, describe_disk_error, explain, find_exit, show_tracebacks


@pytest.mark.parametrize(
    ("number", "cause", "remedy"),
    [
        (errno.EACCES, "permission denied", "let the user that runs toolserver"),
        (errno.EROFS, "read-only", "make it writable"),
        (errno.ENOSPC, "disk is full", "free some space"),
        (errno.ENOTDIR, "a file, not a directory", "move that file away"),
        (errno.EEXIST, "a file, not a directory", "move the file away"),
        (errno.ENOENT, "no such file or folder", "create it"),
    ],
)
def test_an_error_of_the_system_names_path_cause_remedy_and_setting(number, cause, remedy):
    said = describe_disk_error(OSError(number, os.strerror(number), "/data"), "/data", DATA_DIR)
    assert said.startswith("/data: ")
    assert cause in said
    assert remedy in said
    assert said.endswith("or set data_dir (TOOLSERVER_DATA_DIR or --data-dir) to another place")
    assert "Errno" not in said


@pytest.mark.parametrize(
    ("text", "cause"),
    [("database or disk is full", "the disk is full"), ("attempt to write a readonly database", "read-only")],
)
def test_what_sqlite_says_about_the_disk_is_no_fault_of_ours(text, cause):
    assert cause in explain(sqlite3.OperationalError(text))


def test_the_cause_is_found_in_groups_of_groups_and_stands_on_one_line():
    refused = ToolserverError("it is so\nbecause of  this")
    assert explain(ExceptionGroup("a", [ExceptionGroup("b", [refused])])) == "it is so because of this"


def test_the_end_of_a_program_is_found_in_groups():
    end = SystemExit("no room")
    assert find_exit(BaseExceptionGroup("a", [KeyError("x"), BaseExceptionGroup("b", [end])])) is end
    assert find_exit(ExceptionGroup("a", [KeyError("x")])) is None


def test_a_secret_in_the_text_of_a_fault_is_hidden():
    assert "svc_live_" not in explain(KeyError("svc_live_" + "a" * 64))


@pytest.fixture
def lines(monkeypatch):
    """The log lines of this process, as one formatter or the other writes them."""
    written = []

    class Keep(logging.Handler):
        def emit(self, record):
            written.append(self.format(record))

    def log_with(formatter):
        handler = Keep()
        handler.setFormatter(formatter)
        monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
        return written

    return log_with


def raised():
    try:
        raise KeyError("nothing")
    except KeyError as error:
        return ExceptionGroup("a", [error])


@pytest.mark.parametrize(
    ("formatter", "flag", "kept"), [(JsonLines(), False, 1), (None, False, 0), (logging.Formatter(), True, 1)]
)
def test_a_fault_is_one_line_and_its_traceback_is_in_the_log_or_shown_on_demand(lines, formatter, flag, kept):
    written, before = lines(formatter), show_tracebacks.set(flag)
    try:
        said = explain(raised())
    finally:
        show_tracebacks.reset(before)
    assert (
        said == "a fault of the program: KeyError: 'nothing'. `toolserver --traceback …` shows where; please report it"
    )
    assert sum("test_failures.py" in line and "KeyError" in line for line in written) == kept
