"""The three kinds of rows the tables of recorded bodies are made of."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolserver.upstream.source import Source, SourceError


class Read(NamedTuple):
    """A source reads it. `count` items are in the result, or in its member `of`; None: it is one thing.

    `facts` are values by their path in the result. Numbers and texts stand in the file as they are written here;
    times are written as ISO 8601. `given` turns the file into what the upstream would have sent, when the file holds
    less: that is said in `wrapped`. `cut` marks files trimmed below the number of items the source insists on.
    """

    file: str
    source: Source[Any, Any]
    count: int | None
    facts: Mapping[str, Any]
    query: Any = None
    of: str = ""
    given: Callable[[bytes], bytes] = bytes
    wrapped: str = ""
    cut: bool = False


class Refused(NamedTuple):
    """The source it came from refuses it with this error, whose text holds `says`."""

    file: str
    source: Source[Any, Any]
    error: type[SourceError]
    query: Any = None
    says: str = ""


class Unread(NamedTuple):
    """No source of ours reads it."""

    file: str
    why: str


def inside(before: str, after: str) -> Callable[[bytes], bytes]:
    """The file between two pieces of JSON."""
    return lambda body: before.encode() + body + after.encode()


ONE_OF_A_LIST = inside("[", "]")
