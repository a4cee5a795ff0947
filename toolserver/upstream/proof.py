"""Checks that a source proves it is alive, so that its empty or short answer can be believed.

An empty list looks the same whether nothing happened or the feed is dead. Every source that may be empty declares how
to tell the difference. An answer without proof raises `SourceUnproved`, and the next source is queried.
"""

from collections.abc import Sized
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from toolserver.upstream.source_errors import SourceUnproved


@dataclass(frozen=True, slots=True)
class Proof:
    """How a source proves that it is alive. `within_s` is the maximum age of its stamp or newest item, in seconds.

    - `stamp`: the upstream's own time on the document is recent enough, regardless of the number of items.
    - `newest`: an item of a query that is never empty is recent enough.
    - `second`: nothing in the answer proves it, so an empty answer of a single provider is not believed.
    - `harmless`: an empty answer misleads no caller, for the given `reason`.
    """

    how: Literal["stamp", "newest", "second", "harmless"]
    within_s: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.how in ("stamp", "newest") and not self.within_s:
            raise TypeError(f"a proof by {self.how} says within how many seconds")
        if self.how in ("second", "harmless") and len(self.reason.split()) < 4:
            raise TypeError(f"a proof that is {self.how} gives its reason in a sentence")

    @classmethod
    def by_stamp(cls, within_s: float) -> "Proof":
        return cls("stamp", within_s)

    @classmethod
    def by_newest(cls, within_s: float) -> "Proof":
        return cls("newest", within_s)

    @classmethod
    def by_second(cls, reason: str) -> "Proof":
        return cls("second", reason=reason)

    @classmethod
    def harmless(cls, reason: str) -> "Proof":
        return cls("harmless", reason=reason)

    def check(self, value: Any, *, stamp: datetime | None, newest: datetime | None, now: datetime) -> None:
        """Raise SourceUnproved for an answer that does not prove that its source is alive."""
        if self.how == "harmless":
            return
        if self.how == "second":
            if is_empty(value):
                raise SourceUnproved("nothing in the answer proves it")
            return
        time = stamp if self.how == "stamp" else newest
        if time is None:
            raise SourceUnproved(f"no {self.how} proves it")
        if (now - time).total_seconds() > (self.within_s or 0):
            raise SourceUnproved(f"its {self.how} is from {time:%Y-%m-%d %H:%M}")


def is_empty(value: Any) -> bool:
    """Return True if an answer lists nothing: it is a list, or a record whose first field is a list."""
    return count_listed(value) == 0


def count_listed(value: Any) -> int | None:
    """Return how many items an answer lists, for a list or a record whose first field is a list, otherwise None."""
    listed = value[0] if hasattr(value, "_fields") and value else value
    if listed is None:
        return 0
    return len(listed) if isinstance(listed, Sized) and not isinstance(listed, str | bytes) else None
