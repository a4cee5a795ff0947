"""Apply a group of operations to SQLite: in one transaction, or one by one if an operation breaks it."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseUnusable, StorageFailed, TransactionLost, name_error
from toolserver.sql.row_seal import SealedConnection, seal_changes

log = logging.getLogger(__name__)

R = TypeVar("R")
Job = Callable[[SqlConnection], R]
Run = Callable[[SqlConnection, list[Any]], list[Any]]


class PendingOperation(NamedTuple):
    """A waiting operation: the function that serves it and others like it, its argument, and its outcome's destination.

    `room` names what only one instance at a time may change if several share a database; '' if each row is locked.
    """

    run: Run
    argument: Any
    answer: asyncio.Future[Any]
    room: str = ""


class WrongOutcomes(ToolserverError):
    """A function that serves a group returned a number of outcomes other than that of its arguments: a bug of ours."""


def fail_group(group: list[PendingOperation], *checks: Callable[[], None]) -> list[StorageFailed]:
    """Return the failure of the first failed check for each operation of a group; empty if all checks pass."""
    try:
        for check in checks:
            check()
    except StorageFailed as failure:
        return [failure] * len(group)
    return []


def read_each(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Serve a group of reads, each in its own transaction, so that each sees everything committed before it."""
    return [_catch(partial(run_group, asked.run, db, [asked.argument]))[0] for asked in group]


def _catch(work: Callable[[], list[Any]]) -> list[Any]:
    try:
        return work()
    except Exception as failure:
        return [name_error(failure)]


def commit_group(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply a group of writes in one transaction. If an operation breaks it, apply each one separately."""
    try:
        return _transact(db, group, apply_together)
    except Exception as failure:
        error = name_error(failure)
        if isinstance(error, DatabaseUnusable):
            log.error("the database cannot be written", extra={"reason": str(error)})
            return [error] * len(group)
        log.exception("a group of writes failed; each will be tried on its own")
    try:
        return _transact(db, group, apply_each)
    except Exception as failure:
        return [name_error(failure)] * len(group)


def run_group(run: Run, db: SqlConnection, arguments: list[Any]) -> list[Any]:
    """Return the outcomes of a group. Raises WrongOutcomes, as a caller would wait for ever or get a wrong outcome."""
    outcomes = run(db, arguments)
    if len(outcomes) != len(arguments):
        raise WrongOutcomes(f"{len(outcomes)} outcomes for {len(arguments)} operations of {run!r}")
    return outcomes


def _transact(
    db: SqlConnection,
    group: list[PendingOperation],
    do: Callable[[SqlConnection, list[PendingOperation]], list[Any]],
) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = do(db, group)
        seal_changes(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    finally:
        if isinstance(db, SealedConnection):
            db.changes.forget()
    return outcomes


def apply_together(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply adjacent operations with the same function together, in the order of their arrival."""
    outcomes: list[Any] = []
    for run, neighbours in groupby(group, key=lambda asked: asked.run):
        outcomes += run_group(run, db, [asked.argument for asked in neighbours])
    return outcomes


def apply_each(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply each operation separately. One that raises leaves no changes, and its exception is its outcome."""
    return [_guard(db, partial(run_group, asked.run, db, [asked.argument]))[0] for asked in group]


def _guard(db: SqlConnection, work: Callable[[], list[Any]]) -> list[Any]:
    """Return the outcomes of `work`. If it raises, roll back its writes and return its exception."""
    db.execute("SAVEPOINT one")
    changed = db.changes.sums.copy() if isinstance(db, SealedConnection) else []
    try:
        outcomes = work()
    except TransactionLost:
        raise  # no operation is to blame, so the whole group is run again
    except Exception as failure:
        db.execute("ROLLBACK TO one")  # raises if SQLite gave up the whole transaction, so that the group fails
        if isinstance(db, SealedConnection):
            db.changes.restore(changed)
        outcomes = [name_error(failure)]
    db.execute("RELEASE one")
    return outcomes


def run_jobs(db: SqlConnection, jobs: list[Job[Any]]) -> list[Any]:
    """Run jobs one after another. One that raises leaves no changes."""
    outcomes: list[Any] = []
    for job in jobs:
        outcomes += _guard(db, lambda job=job: [job(db)])  # type: ignore[misc]
    return outcomes
