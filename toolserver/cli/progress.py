"""Report the progress of a long command in a line on stderr every few seconds."""

import sys
import time
from collections import Counter

EVERY_S = 2.0


class RowProgress:
    """Counts rows by what is done with them, and prints the counts from time to time."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s, self._rows = every_s, Counter[str]()
        self._said_at = self._began = time.monotonic()

    def __call__(self, done: str, rows: int) -> None:
        """Count rows, and print the count if nothing was printed for a while."""
        self._rows[done] += rows
        now = time.monotonic()
        if now - self._said_at >= self._every_s:
            self._said_at = now
            counts = ", ".join(f"{count:,} rows {what}" for what, count in self._rows.items())
            print(f"{counts} after {now - self._began:.0f} s", file=sys.stderr, flush=True)
