"""Lists the packages with tools: those named in the settings, and installed ones that announce themselves."""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points

GROUP = "toolserver.tools"
"""The entry point group of third-party packages; the value of an entry point is the package of the tools."""


def tool_packages(named: Iterable[str], find: Callable[..., Iterable[EntryPoint]] = entry_points) -> tuple[str, ...]:
    """Return the named packages and then the announced ones in the order of their names, each once."""
    announced = sorted(point.value for point in find(group=GROUP))
    return tuple(dict.fromkeys([*named, *announced]))
