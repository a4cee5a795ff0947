"""Processes that may die at any step, and disks that outlive them."""

import asyncio
import sqlite3
from collections import deque
from contextlib import closing
from functools import cache
from random import Random
from typing import Any

import anyio

from tests.quick_files import migrate_copied


class Crashed(BaseException):
    """The process this happens in is dead. No code of ours catches it, so none can tidy up."""


class Process:
    """One life of a service. It dies at its n-th step if that is how it is to be."""

    def __init__(self, rng: Random, *, dies_after: int | None = None) -> None:
        self.rng, self._left = rng, dies_after
        self.alive, self.died_at = True, 0.0
        self.scope = anyio.CancelScope()
        self.files: list[File] = []

    def crash(self) -> None:
        self.alive, self.died_at = False, anyio.current_time()
        for file in self.files:
            file.lose()
        self.scope.cancel()

    def check(self) -> None:
        if not self.alive:
            raise Crashed

    async def step(self) -> None:
        """Something that takes a moment: afterwards the process may be dead."""
        self.check()
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.crash()
                raise Crashed
        await anyio.sleep(0.0001 + (self.rng.random() ** 8) * 0.05)
        self.check()


@cache
def empty() -> bytes:
    """A new database as bytes: faster than migrating every time."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        return db.serialize()


def new_disk() -> sqlite3.Connection:
    """What a process writes is here when it is dead."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.deserialize(empty())
    db.execute("PRAGMA foreign_keys=ON")
    return db


class File:
    """`Durable` without threads: the same promises, on a disk of a simulated machine."""

    shared = False

    def __init__(self, disk: sqlite3.Connection, process: Process) -> None:
        self._db, self._process = disk, process
        self._asked: deque[tuple[Any, Any, asyncio.Future[Any]]] = deque()
        self._news = anyio.Event()
        process.files.append(self)

    def lose(self) -> None:
        """The process is dead: what was not written never will be."""
        for _, _, answer in self._asked:
            if not answer.done():
                answer.set_exception(Crashed())
        self._asked.clear()

    async def together(self, run: Any, argument: Any) -> Any:
        return await self._ask(run, argument)

    async def alone(self, job: Any) -> Any:
        return await self._ask(lambda db, jobs: [each(db) for each in jobs], job)

    def soon(self, run: Any, argument: Any) -> None:
        self._ask(run, argument)

    def ride(self, run: Any, argument: Any) -> None:
        self._ask(run, argument)  # a group of its own at once: the shortest wait that is allowed

    async def read(self, job: Any) -> Any:
        await self._process.step()
        return job(self._db)

    def _ask(self, run: Any, argument: Any) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        if not self._process.alive:
            answer.set_exception(Crashed())
            return answer
        self._asked.append((run, argument, answer))
        self._news.set()
        return answer

    async def work(self) -> None:
        """Write what is asked for in its order, until the process dies or is cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._asked:
                run, argument, answer = self._asked[0]
                await self._process.step()
                outcome = None if answer.cancelled() else self._written(run, argument)
                await self._process.step()  # it is on the disk, and nobody knows yet
                self._asked.popleft()
                if answer.done():
                    continue
                if isinstance(outcome, Exception):
                    answer.set_exception(outcome)
                else:
                    answer.set_result(outcome)

    def _written(self, run: Any, argument: Any) -> Any:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            outcome = run(self._db, [argument])[0]
            self._db.execute("COMMIT")
        except Exception as failure:
            self._db.execute("ROLLBACK")
            return failure
        return outcome
