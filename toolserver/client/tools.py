"""Provides every tool as a method of a client. An argument that is a Python keyword ends in an underscore: `from_`.

The types of arguments and payloads are in tools.pyi, which `toolserver docs` writes from the
registry. Here any name is a method, because the service decides which tools there are,
including those of other packages.
"""

from typing import Any


class _Methods:
    """Turns an unknown attribute into a call of the tool with that name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def call_tool(**arguments: Any) -> Any:
            return self.call(name, {keyword.removesuffix("_"): value for keyword, value in arguments.items()})

        call_tool.__name__ = call_tool.__qualname__ = name
        return call_tool


class Tools(_Methods):
    """The tools as methods that return their answer."""


class AsyncTools(_Methods):
    """The tools as methods whose answer is awaited."""


def __getattr__(name: str) -> Any:
    """Return the types of payloads, such as `WeatherPayload`, for type checkers; at run time they are dicts."""
    if not name.endswith("Payload"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return dict[str, Any]
