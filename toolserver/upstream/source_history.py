"""Records each source's past day by quarters of an hour, and when it went down and came back.

Only actual exchanges are counted. A quarter in which a source was not queried has no row: its state is unknown.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from toolserver.clock import Clock

QUARTER_S = 900
QUARTERS = 96  # a day of them, including the current one
CHANGES = 200  # of all sources together; the oldest are dropped first

ExchangeVerdict = Literal["good", "old", "failed"]
"""`old` means that the source answered, but its data are older than permitted."""


class SourceQuarter(NamedTuple):
    """The exchanges with one source in one quarter of an hour, which is counted from the epoch.

    `good_at` is when the last good exchange ended, in epoch seconds, and `last_at` when the
    last of all ended. `last` is the result of that last one: `ok`, or the word of its
    failure.
    """

    quarter: int
    good: int = 0
    old: int = 0
    failed: int = 0
    good_at: float | None = None
    last_at: float = 0.0
    last: str = ""

    @property
    def asked(self) -> int:
        """The number of exchanges."""
        return self.good + self.old + self.failed


class SourceChange(NamedTuple):
    """A source went down (its circuit opened) or came back. `at` is in epoch seconds, `reason` one word."""

    at: float
    source: str
    kind: Literal["down", "back"]
    reason: str


class SourceHistoryKeeper(Protocol):
    """Stores the history, so that a restart loses none of it."""

    def save_quarter(self, source: str, row: SourceQuarter) -> None:
        """Store a quarter, replacing its stored row."""
        ...

    def save_change(self, change: SourceChange) -> None:
        """Store a change."""
        ...


class SourceHistory:
    """The past day of every source that was queried."""

    def __init__(self, clock: Clock, keeper: SourceHistoryKeeper | None = None) -> None:
        self._clock, self._keeper = clock, keeper
        self._quarters: dict[str, deque[SourceQuarter]] = {}
        self._changes: deque[SourceChange] = deque(maxlen=CHANGES)

    def restore(self, quarters: Iterable[tuple[str, SourceQuarter]], changes: Iterable[SourceChange]) -> None:
        """Restore stored rows, oldest first."""
        for source, row in quarters:
            self._put(source, row)
        self._changes.extend(changes)

    def count(self, source: str, verdict: ExchangeVerdict, word: str) -> None:
        """Count an exchange that has just ended with the result `word`."""
        now = self._clock.time()
        quarter = math.floor(now / QUARTER_S)
        rows = self._quarters.get(source)
        row = rows[-1] if rows and rows[-1].quarter == quarter else SourceQuarter(quarter)
        counted = row._replace(
            good=row.good + (verdict == "good"),
            old=row.old + (verdict == "old"),
            failed=row.failed + (verdict == "failed"),
            good_at=now if verdict == "good" else row.good_at,
            last_at=now,
            last=word,
        )
        self._put(source, counted)
        if self._keeper is not None:
            self._keeper.save_quarter(source, counted)

    def note(self, source: str, kind: Literal["down", "back"], reason: str) -> None:
        """Record that a source went down or came back."""
        change = SourceChange(self._clock.time(), source, kind, reason)
        self._changes.append(change)
        if self._keeper is not None:
            self._keeper.save_change(change)

    def quarters(self, source: str) -> list[SourceQuarter]:
        """Return the quarters of the past day in which a source was queried, oldest first."""
        first = math.floor(self._clock.time() / QUARTER_S) - QUARTERS + 1
        return [row for row in self._quarters.get(source, ()) if row.quarter >= first]

    def changes(self) -> list[SourceChange]:
        """Return the last changes of all sources, newest first."""
        return list(reversed(self._changes))

    def _put(self, source: str, row: SourceQuarter) -> None:
        rows = self._quarters.setdefault(source, deque(maxlen=QUARTERS))
        if rows and rows[-1].quarter == row.quarter:
            rows[-1] = row
        elif not rows or rows[-1].quarter < row.quarter:
            rows.append(row)
