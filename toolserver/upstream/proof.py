"""How a source proves that it is alive, so that an empty or a short answer of it may be believed.

A list without items looks the same whether nothing happened or nobody wrote it. Every source that may be empty says
what tells the two apart; an answer that does not prove it raises `SourceUnproved`, and the next source is asked.
"""

from collections.abc import Sized
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from toolserver.upstream.source_errors import SourceUnproved


@dataclass(frozen=True, slots=True)
class Proof:
    """What proves that a source is alive. `within_s` is how old its stamp or its newest item may be, in seconds.

    - `stamp`: the upstream's own time on the document is young enough, however many items it lists.
    - `newest`: an item of a query that is never empty is young enough.
    - `second`: nothing in the answer proves it: an empty one is believed of no single provider.
    - `harmless`: emptiness misleads nobody, for the `reason` given.
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
            raise SourceUnproved(f"its {self.how} is of {time:%Y-%m-%d %H:%M}")


def is_empty(value: Any) -> bool:
    """Whether an answer lists nothing: a list, or a record whose first field is one."""
    return count_listed(value) == 0


def count_listed(value: Any) -> int | None:
    """How many items an answer lists: a list, or a record whose first field is one. None for what is no list."""
    listed = value[0] if hasattr(value, "_fields") and value else value
    if listed is None:
        return 0
    return len(listed) if isinstance(listed, Sized) and not isinstance(listed, str | bytes) else None
