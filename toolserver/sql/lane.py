"""Serve operations in groups in a thread: each group has the operations that wait when the previous one finishes."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import anyio.to_thread

from toolserver.sql.errors import DatabaseError, StorageClosed, StorageFailed
from toolserver.sql.transactions import PendingOperation, Run

GROUP = 128  # operations per transaction: enough to make the fsync cheap, few enough to keep the wait short
RIDE_S = 1.0  # how long an operation without a waiting caller may wait to share the commit of others


class Lane:
    """A thread and its queue. The thread runs only `serve`, with each group, and at its end `finish`.

    A group is passed to the thread when the previous one is finished and the callers that it woke have run, so that
    their next operations are in the next group. So n callers form groups of n, not two alternating groups of half n.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[list[PendingOperation]], list[Any]],
        finish: Callable[[], None],
    ) -> None:
        self._serve, self._finish = serve, finish
        self._waiting: deque[PendingOperation] = deque()
        self._riding: list[PendingOperation] = []
        self._groups: SimpleQueue[list[PendingOperation] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._closed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread.start()

    async def close(self) -> None:
        """Refuse new operations, finish the waiting ones and end the thread."""
        self._closed = True
        self._begin()
        await self._idle.wait()
        self._groups.put(None)
        await anyio.to_thread.run_sync(self._thread.join)

    def ask(self, run: Run, argument: Any, *, rides: bool = False, room: str = "") -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._closed:
            answer.set_exception(StorageClosed("the database is closed"))
            return answer
        asked = PendingOperation(run, argument, answer, room)
        if rides:
            if not self._riding:
                self._loop.call_later(RIDE_S, self._begin)
            self._riding.append(asked)
            return answer
        self._waiting.append(asked)
        self._begin()
        return answer

    def _begin(self) -> None:
        """Form a group as soon as the currently running callers have made their requests, unless one is in progress."""
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        group, self._riding = self._riding, []
        room = GROUP + len(group)
        while self._waiting and len(group) < room:
            asked = self._waiting.popleft()
            if not asked.answer.cancelled():
                group.append(asked)
        if group:
            self._groups.put(group)
        else:
            self._idle.set()

    def _work(self) -> None:
        while (group := self._groups.get()) is not None:
            self._loop.call_soon_threadsafe(self._resolve, group, self._serve(group))
        self._finish()

    def _resolve(self, group: list[PendingOperation], outcomes: list[Any]) -> None:
        for asked, outcome in zip(group, outcomes, strict=True):
            _set_outcome(asked.answer, outcome)
        self._loop.call_soon(self._hand_over)


def _set_outcome(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():
        return  # cancelled in the meantime
    if isinstance(outcome, DatabaseError):
        failure = StorageFailed(str(outcome))
        failure.__cause__ = outcome
        answer.set_exception(failure)
    elif isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
