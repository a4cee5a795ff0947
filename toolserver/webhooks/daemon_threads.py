"""Run calls that may hang in a bounded pool of threads, for which the process does not wait when it ends.

The interpreter joins the threads of `concurrent.futures` when it exits, which would delay a graceful stop for as long
as the system's resolver waits for a dead name server.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

R = TypeVar("R")


class DaemonThreads:
    """Runs blocking calls. Threads are started as needed, up to `most`; further calls wait their turn."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._started = self._busy = 0
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self, call: Callable[..., R], *arguments: Any) -> asyncio.Future[R]:
        """Run a call in a thread. Its result or exception arrives in the future."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._busy += 1
        answer.add_done_callback(self._ended)

        def work() -> None:
            result: Any = None
            failure: Exception | None = None
            try:
                result = call(*arguments)
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody is waiting any more
                loop.call_soon_threadsafe(_hand_over, answer, result, failure)

        self._queue.put(work)
        if self._started < min(self._busy, self._most):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return answer

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self._busy -= 1

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def close(self) -> None:
        """End every thread once it has nothing left to do. Hanging threads last until the process ends."""
        for _ in range(self._started):
            self._queue.put(None)


def _hand_over(answer: "asyncio.Future[Any]", result: Any, failure: Exception | None) -> None:
    if answer.done():
        return
    if failure is None:
        answer.set_result(result)
    else:
        answer.set_exception(failure)
