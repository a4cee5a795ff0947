"""Keeps rendered answers in memory, bounded by number and bytes; the oldest are dropped first."""

from collections.abc import Hashable

from toolserver.calls.response import RenderedResponse

ENTRIES = 4096
MOST_BYTES = 32 << 20  # of all payloads; data that faces derive from them takes up to twice as much in addition


class AnswerTable:
    """Answers by key, newest last.

    Answers to pinned keys are never dropped: those to default arguments, one for each tool. Callers choose the others.
    """

    def __init__(self, entries: int = ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self._entries, self._most_bytes = entries, most_bytes
        self._kept: dict[Hashable, RenderedResponse] = {}
        self._pinned: set[Hashable] = set()
        self._bytes = 0  # of the payloads

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> RenderedResponse | None:
        """Return the answer for a key, or None."""
        return self._kept.get(key)

    def pin(self, key: Hashable) -> None:
        """Exempt the answer for this key from being dropped."""
        self._pinned.add(key)

    def keep(self, key: Hashable, rendered: RenderedResponse) -> None:
        """Keep an answer, replacing the key's previous one. Above a bound, drop the oldest answers."""
        self._drop(key)
        self._put(key, rendered)
        spared = 0
        while (len(self._kept) > self._entries or self._bytes > self._most_bytes) and spared <= len(self._pinned):
            oldest = next(iter(self._kept))
            first = self._drop(oldest)
            if first is not None and oldest in self._pinned:
                self._put(oldest, first)
                spared += 1

    def _put(self, key: Hashable, rendered: RenderedResponse) -> None:
        self._kept[key] = rendered
        self._bytes += len(rendered.payload)

    def _drop(self, key: Hashable) -> RenderedResponse | None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.payload)
        return dropped
