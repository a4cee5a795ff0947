"""Keep marks outside the database that only rise, so that an older copy of the database is recognised.

The marks are in one JSON object beside the keys, `keys/high-water.json`: how far the seals of
rows have come (`rows`, see `seal_marks`), the last signed state of the log of uncharged calls
(`log`), and the number of the next deposit address (`address`). A backup of the database must
not restore older marks: `toolserver db restore` changes only `rows`. If instances share a
database, `postgres_marks` has the marks of all of them.
"""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from toolserver.core.private_file import hold_folder, write_private
from toolserver.errors import ToolserverError
from toolserver.sql.errors import DatabaseError, StorageFailed, TransactionLost
from toolserver.sql.postgres import PostgresConnection, PostgresTerms

R = TypeVar("R")

FILE = "keys/high-water.json"  # below the data directory
AGAIN_S = 0.02  # between two tries, within the time for one piece of work


class MarksBroken(ToolserverError):
    """The file of marks cannot be read. Nothing is signed until an operator has checked it."""


class HighWater:
    """The marks of one data directory. Several processes may raise them at the same time."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE

    def read_all(self) -> dict[str, Any]:
        """Return every mark by its name; none if there is no file. Raises MarksBroken."""
        return self._read()

    def read(self, name: str) -> Any:
        """Return a mark; None if there is none yet. Raises MarksBroken."""
        return self._read().get(name)

    def read_own(self, name: str) -> Any:
        """Return a mark of this data directory alone, also where instances share others. Raises MarksBroken."""
        return HighWater._read(self).get(name)

    def change_own(self, name: str, rule: Callable[[Any], Any]) -> Any:
        """Replace a mark of this data directory alone with the result of the rule. Raises MarksBroken."""
        return HighWater.change(self, name, rule)

    def raise_to(self, name: str, number: int) -> int:
        """Raise a number, keep a greater one, and return the result. Raises MarksBroken."""
        return int(self.change(name, lambda before: number if before is None else max(before, number)))

    def change(self, name: str, rule: Callable[[Any], Any]) -> Any:
        """Replace a mark with the result of the rule, on disk. Raises MarksBroken."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with hold_folder(self.path.parent):
            marks = self._read()
            after = rule(marks.get(name))
            if after != marks.get(name):
                write_private(self.path, json.dumps({**marks, name: after}, indent=2) + "\n")
        return after

    def _read(self) -> dict[str, Any]:
        try:
            marks = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise MarksBroken(f"{self.path} is not JSON ({error}): restore it from a backup") from None
        if not isinstance(marks, dict):
            raise MarksBroken(f"{self.path} is not a JSON object: restore it from a backup")
        return marks


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
        outcome = job(db)
    except BaseException:
        db.rollback()
        raise
    db.commit()
    return outcome
