"""Lists the packages with tools: those named in the settings, and installed ones that announce themselves."""

from collections.abc import Iterable
from importlib.metadata import entry_points

GROUP = "toolserver.tools"
"""The entry point group of third-party packages; the value of an entry point is the package of the tools."""


def tool_packages(named: Iterable[str]) -> tuple[str, ...]:
    """Return the named packages and then the announced ones in the order of their names, each once."""
    announced = sorted(point.value for point in entry_points(group=GROUP))
    return tuple(dict.fromkeys([*named, *announced]))
