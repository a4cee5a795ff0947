"""Every tool as a method of a client. An argument that is a word of Python has an underscore behind it: `from_`.

The types of arguments and payloads are in tools.pyi, which `toolserver docs` writes from the registry. Here any name is
a method: which tools there are the service says, and those of other packages are among them.
"""

from typing import Any


class _Methods:
    """Turns an attribute that is not there into a call of the tool of that name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def call_tool(**arguments: Any) -> Any:
            return self.call(name, {given.removesuffix("_"): value for given, value in arguments.items()})

        call_tool.__name__ = call_tool.__qualname__ = name
        return call_tool


class Tools(_Methods):
    """The tools as methods that return their answer."""


class AsyncTools(_Methods):
    """The tools as methods whose answer is awaited."""


def __getattr__(name: str) -> Any:
    """The types of payloads, such as `WeatherPayload`: for type checkers; when a program runs they are dicts."""
    if not name.endswith("Payload"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return dict[str, Any]
