"""Defines the errors of sources that returned nothing usable. Callers still get the data of other sources."""

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
"""The exceptions that a parser raises for a body or row of an unexpected form."""


class SourceError(ToolserverError):
    """An upstream returned nothing usable.

    `word` is the failure in one word, `reason` adds the detail, which has no URL query and no key. `retry_after_s` is
    set if the upstream said when to retry.
    """

    word = "changed"
    was_sent = True  # False if we did not send the request, which says nothing about the upstream

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
    """The upstream (429, 418, quota text) or our own budget allows no request now."""

    word = "rate_limited"


class SourceRefused(SourceError):
    """401, 403 or 451."""

    word = "refused"


class HostRefused(SourceRefused):
    """The host refuses our requests. If `was_sent` is False, we did not retry because it refused recently."""

    def __init__(self, detail: str, *, was_sent: bool = True) -> None:
        super().__init__(detail)
        self.was_sent = was_sent


class SourceChanged(SourceError):
    """The body does not have the known shape of this source; `word` is that of the base class."""


class SourceEmpty(SourceError):
    """A well-formed body with fewer items than required."""

    word = "empty"


class SourceUnproved(SourceEmpty):
    """An empty or short answer without proof that the upstream is alive."""

    word = "unproved_empty"


class SourceFrozen(SourceError):
    """The newest item is older than this source permits."""

    word = "frozen"


class SourceTooLarge(SourceError):
    """More bytes than the source allows."""

    word = "too_large"


class SourceImplausible(SourceError):
    """A value jumped and no second provider agrees."""

    word = "implausible"


class SourceExcluded(SourceError):
    """The licence policy excludes this source."""

    word = "licence"


class SourceUnusable(SourceError):
    """The source needs a key that is not set."""

    word = "no_key"


def first_source_error(group: ExceptionGroup[Any]) -> SourceError:
    """Return the first error of a group, which has to be a source error. Other errors are bugs and are raised."""
    error = group.exceptions[0]
    if isinstance(error, ExceptionGroup):
        return first_source_error(error)
    if not isinstance(error, SourceError):
        raise group
    return error
