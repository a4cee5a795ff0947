"""Keep the high-water marks of instances that share a database: in the database for all, and in a file for each.

The database tells each instance, and each command on any host, the marks that all of them have raised. The file in a
data directory is a separate witness, because a database restored from a backup knows less than before. The later of the
two values counts.
"""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from toolserver.sql.errors import DatabaseError, StorageFailed, TransactionLost
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.postgres import PostgresConnection, PostgresTerms

R = TypeVar("R")

AGAIN_S = 0.02  # between two tries, within the time for one piece of work


class SharedMarks(HighWater):
    """The marks of all instances. Each use opens its own connection, because marks are raised only once in many calls.

    Besides MarksBroken, each method raises StorageFailed if the database cannot be used.
    """

    def __init__(self, data_dir: Path, terms: PostgresTerms) -> None:
        super().__init__(data_dir)
        self._terms = terms

    def read_all(self) -> dict[str, Any]:
        """Return every mark by its name, the later of database and file."""
        shared, own = self._run(_read), super().read_all()
        return {name: find_later(own.get(name), shared.get(name)) for name in {**shared, **own}}

    def read(self, name: str) -> Any:
        """Return a mark; None if there is none yet."""
        return self.read_all().get(name)

    def change(self, name: str, rule: Callable[[Any], Any]) -> Any:
        """Replace a mark with the rule's result for the later value, in the file and then in the database.

        If the database is lost in between, the rule may be called again, and then starts with the file's value.
        """
        return self._run(partial(self._change, name, rule))

    def _change(self, name: str, rule: Callable[[Any], Any], db: PostgresConnection) -> Any:
        db.execute("INSERT INTO mark(name, value) VALUES(?, 'null') ON CONFLICT DO NOTHING", (name,))
        shared = _decode(db.execute("SELECT value FROM mark WHERE name=? FOR UPDATE", (name,)).fetchone()[0])
        after = super().change(name, lambda own: rule(find_later(own, shared)))
        db.execute("UPDATE mark SET value=? WHERE name=?", (json.dumps(after), name))
        return after

    def _run(self, job: Callable[[PostgresConnection], R]) -> R:
        with ThreadPoolExecutor(1) as thread:  # a connection runs an event loop, and a thread runs one at a time
            return thread.submit(_transact, self._terms, job).result()


def find_later(one: Any, other: Any) -> Any:
    """Return the later of two values of a mark: the greater number, or the longer log of the later name.

    Raises MarksBroken if they cannot be compared.
    """
    if one is None or other is None:
        return other if one is None else one
    try:
        return max(one, other, key=_rank)
    except (TypeError, KeyError):
        raise MarksBroken(f"two values of a mark cannot be compared: {one!r} and {other!r}") from None


def store_marks(db: PostgresConnection, marks: Mapping[str, Any]) -> None:
    """Write the marks of a file to a database that has none, within the caller's transaction."""
    for name, value in marks.items():
        db.execute("INSERT INTO mark(name, value) VALUES(?, ?) ON CONFLICT DO NOTHING", (name, json.dumps(value)))


def _rank(value: Any) -> Any:
    return (value.get("part", 1), value["size"]) if isinstance(value, dict) else value


def _read(db: PostgresConnection) -> dict[str, Any]:
    return {name: _decode(value) for name, value in db.execute("SELECT name, value FROM mark")}


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MarksBroken(f"a mark in the database is not JSON: {error}") from None


def _transact(terms: PostgresTerms, job: Callable[[PostgresConnection], R]) -> R:
    """Run a job in its own transaction, and retry after a loss until its time is over."""
    db, until = PostgresConnection(terms), time.monotonic() + terms.work_s
    db.limit(until)
    try:
        while True:
            try:
                return _transact_once(db, job)
            except TransactionLost:
                if time.monotonic() + AGAIN_S >= until:
                    raise
                time.sleep(AGAIN_S)
    except (DatabaseError, TransactionLost) as error:
        raise StorageFailed(f"the marks in the database cannot be used: {error}") from error
    finally:
        db.close()


def _transact_once(db: PostgresConnection, job: Callable[[PostgresConnection], R]) -> R:
    db.begin()
    try:
        found = job(db)
    except BaseException:
        db.rollback()
        raise
    db.commit()
    return found
