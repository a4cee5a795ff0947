"""One task does the work, all who want the result wait for it."""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

T = TypeVar("T")


@dataclass(slots=True)
class _Flight:
    landed: anyio.Event = field(default_factory=anyio.Event)
    value: Any = None
    error: Exception | None = None


class SingleFlight:
    """Work shared by key. It runs in the service's own task group: a caller who hangs up ends only its own wait."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._flights: dict[Hashable, _Flight] = {}

    def flying(self, key: Hashable) -> bool:
        """Whether work for this key is under way."""
        return key in self._flights

    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> None:
        """Start the work unless it is under way; nobody waits for it here."""
        if key not in self._flights:
            flight = self._flights[key] = _Flight()
            self._tasks.start_soon(self._fly, key, flight, work)

    async def do(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the work for this key, done once for all who wait. Raises what the work raises."""
        self.start(key, work)
        flight = self._flights[key]
        await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        return flight.value  # type: ignore[no-any-return]

    async def _fly(self, key: Hashable, flight: _Flight, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            flight.value = await work()
        except Exception as error:  # handed to those who wait; a task group must not die of it
            flight.error = error
        except BaseException:
            flight.error = RuntimeError("the service is stopping")
            raise
        finally:
            del self._flights[key]
            flight.landed.set()
