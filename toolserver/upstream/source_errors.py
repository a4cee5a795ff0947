"""The errors of sources: an upstream that gave nothing usable. Callers still get what other sources gave."""

import csv
from typing import Any

from toolserver.errors import ToolserverError

UNREADABLE = (
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    SyntaxError,
    csv.Error,
)
"""What a parser raises when a body, or a row of it, is not as it should be."""


class SourceError(ToolserverError):
    """An upstream gave nothing usable.

    `word` is what happened in one word, `reason` that and the detail, which holds no URL query and no key.
    `retry_after_s` is set when the upstream said when to come back.
    """

    word = "changed"
    asked = True  # False where we refused to send the request: that says nothing about the upstream

    def __init__(self, detail: str = "", *, word: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.word = word or self.word
        self.retry_after_s = retry_after_s

    @property
    def reason(self) -> str:
        """`word: detail`, at most 100 characters of detail: one entry of `_meta.sources[].reason`."""
        detail = str(self)[:100]
        return f"{self.word}: {detail}" if detail else self.word


class SourceDown(SourceError):
    """No connection, no answer in time, or a server error. `word` is connect, timeout, http_<code> or breaker_open."""

    word = "connect"


class SourceLimited(SourceError):
    """The upstream (429, 418, quota text) or our own budget says: not now."""

    word = "rate_limited"


class SourceRefused(SourceError):
    """401, 403 or 451."""

    word = "refused"


class HostRefused(SourceRefused):
    """The host refuses requests from here; with `asked` False we did not ask again, because it did so lately."""

    def __init__(self, detail: str, *, asked: bool = True) -> None:
        super().__init__(detail)
        self.asked = asked


class SourceChanged(SourceError):
    """The body is not the shape this source is known to have; `word` is that of the base class."""


class SourceEmpty(SourceError):
    """A well-formed body with fewer items than there must be."""

    word = "empty"


class SourceUnproved(SourceEmpty):
    """An empty or short answer, and nothing in it proves that the upstream is alive."""

    word = "unproved_empty"


class SourceFrozen(SourceError):
    """The newest item is older than this source may ever be."""

    word = "frozen"


class SourceTooLarge(SourceError):
    """More bytes than the source allows."""

    word = "too_large"


class SourceImplausible(SourceError):
    """A value jumped and no second provider agrees."""

    word = "implausible"


class SourceExcluded(SourceError):
    """The licence policy bars this source."""

    word = "licence"


class SourceUnusable(SourceError):
    """The source needs a key that is not set."""

    word = "no_key"


def first_source_error(group: ExceptionGroup[Any]) -> SourceError:
    """The first error of a group, which has to be a source error: anything else is our own fault and is raised."""
    error = group.exceptions[0]
    if isinstance(error, ExceptionGroup):
        return first_source_error(error)
    if not isinstance(error, SourceError):
        raise group
    return error
