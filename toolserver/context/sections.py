"""Reads the sections of a composed payload concurrently, each by its own chain, into results by name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio

from toolserver.context.context import ToolContext
from toolserver.context.fallback import Fallback
from toolserver.context.gather import limit_time
from toolserver.upstream.source_errors import SourceError

T = TypeVar("T")


class Sections:
    """The results of sections by name: a value, or the SourceError that left a warning."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def get(self, name: str, then: Callable[[Any], T]) -> T | None:
        """Return a section's value converted by `then`, or None if it failed or was not requested."""
        value = self._found.get(name)
        return None if value is None or isinstance(value, SourceError) else then(value)

    def require_any(self) -> None:
        """Raise the first section's SourceError if every section failed."""
        errors = [value for value in self._found.values() if isinstance(value, SourceError)]
        if errors and len(errors) == len(self._found):
            raise errors[0]


async def read_sections(
    ctx: ToolContext,
    chains: Mapping[str, tuple[Fallback[Any], ...]],
    others: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
) -> Sections:
    """Read every section at once by its chain of fallbacks. `others` are sections read in another way."""
    found: dict[str, Any] = dict.fromkeys(
        [*chains, *(others or {})]
    )  # in the requested order, not the order of arrival

    async def run(name: str, read: Callable[[], Awaitable[Any]]) -> None:
        try:
            found[name] = await read()
        except SourceError as error:
            found[name] = error

    def chained(name: str, fallbacks: tuple[Fallback[Any], ...]) -> Callable[[], Awaitable[Any]]:
        return lambda: ctx.first(name, *limit_time(fallbacks))

    async with anyio.create_task_group() as tasks:
        for name, fallbacks in chains.items():
            tasks.start_soon(run, name, chained(name, fallbacks))
        for name, read in (others or {}).items():
            tasks.start_soon(run, name, read)
    return Sections(found)
