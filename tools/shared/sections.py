"""Sections of a composed payload: read side by side, each by its own chain, and known by name afterwards."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio

from toolserver.context import Leg, Reading, ToolContext
from toolserver.errors import SourceDown, SourceError

T = TypeVar("T")
U = TypeVar("U")

BUDGET_S = 9.0  # for all legs of a section together: a slow chain must not cost the whole payload
GRACE_S = 0.3  # for a leg after that: enough to take what is at hand, not to fetch


class Sections:
    """What came of the sections: a value each, or the SourceError that left a warning."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def get(self, name: str, then: Callable[[Any], T]) -> T | None:
        """A section's value as `then` shows it; None when it failed or was not asked for."""
        value = self._found.get(name)
        return None if value is None or isinstance(value, SourceError) else then(value)

    def require_any(self) -> None:
        """Raises the first section's SourceError when every section failed."""
        errors = [value for value in self._found.values() if isinstance(value, SourceError)]
        if errors and len(errors) == len(self._found):
            raise errors[0]


async def read_sections(
    ctx: ToolContext,
    chains: Mapping[str, tuple[Leg[Any], ...]],
    others: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
) -> Sections:
    """Every section at once, by its chain of legs; `others` are those that are read in another way."""
    found: dict[str, Any] = dict.fromkeys([*chains, *(others or {})])  # the order asked for, not that of arrival

    async def run(name: str, read: Callable[[], Awaitable[Any]]) -> None:
        try:
            found[name] = await read()
        except SourceError as error:
            found[name] = error

    def chained(name: str, legs: tuple[Leg[Any], ...]) -> Callable[[], Awaitable[Any]]:
        return lambda: ctx.first(name, *in_time(legs))

    async with anyio.create_task_group() as tasks:
        for name, legs in chains.items():
            tasks.start_soon(run, name, chained(name, legs))
        for name, read in (others or {}).items():
            tasks.start_soon(run, name, read)
    return Sections(found)


def in_time(legs: tuple[Leg[T], ...], seconds: float = BUDGET_S) -> tuple[Leg[T], ...]:
    """The legs, all of which give up so many seconds from now; what is kept can still be taken after that."""
    ends = anyio.current_time() + seconds

    def limited(leg: Leg[T]) -> Leg[T]:
        async def run(reading: Reading) -> T:
            try:
                with anyio.fail_after(max(ends - anyio.current_time(), GRACE_S)):
                    return await leg(reading)
            except TimeoutError:
                raise SourceDown("out of time", word="timeout") from None

        return run

    return tuple(limited(leg) for leg in legs)


def after(leg: Leg[T], then: Callable[[T], U]) -> Leg[U]:
    """The leg, its value turned into something else. `then` may raise like that of `via`."""

    async def run(reading: Reading) -> U:
        return then(await leg(reading))

    return run
