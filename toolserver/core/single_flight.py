"""Runs work once for all callers that request the same result at the same time."""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


@dataclass(slots=True)
class _Run:
    ended: anyio.Event = field(default_factory=anyio.Event)
    value: Any = None
    error: Exception | None = None
    is_abandoned: bool = False


class SingleFlight:
    """Work shared by key.

    With a task group the work runs there, and a cancelled caller ends only its own wait.
    Without one it runs in the task of the first caller; if that caller is cancelled, a
    waiting caller starts the work again.
    """

    def __init__(self, tasks: TaskGroup | None = None) -> None:
        self._tasks = tasks
        self._runs: dict[Hashable, _Run] = {}

    def is_running(self, key: Hashable) -> bool:
        """Return True if the work for this key has begun and not ended."""
        return key in self._runs

    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> None:
        """Start the work in the task group without waiting, unless it is already running."""
        if key not in self._runs:
            if self._tasks is None:
                raise RuntimeError("work without a caller needs a task group")
            run = self._runs[key] = _Run()
            self._tasks.start_soon(self._run, key, run, work)

    async def do(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the work for this key, done once for all waiting callers. Raise what the work raises."""
        run = await self._join(key, work)
        while run.is_abandoned:
            run = await self._join(key, work)
        if run.error is not None:
            raise run.error
        return run.value  # type: ignore[no-any-return]

    async def _join(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> _Run:
        """Start the work if it is not running, and wait for its end."""
        run = self._runs.get(key)
        if run is None and self._tasks is None:
            run = self._runs[key] = _Run()
            await self._run(key, run, work)
        elif run is None:
            self.start(key, work)
            run = self._runs[key]
        await run.ended.wait()
        return run

    async def _run(self, key: Hashable, run: _Run, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            run.value = await work()
        except Exception as error:  # raised to each caller; the task group must survive it
            run.error = error
        except BaseException:
            run.is_abandoned = self._tasks is None
            run.error = RuntimeError("the service is stopping")
            raise
        finally:
            del self._runs[key]
            run.ended.set()
