"""The rendered answers in memory: so many of them and so many bytes; those that were made first are forgotten first."""

from collections.abc import Hashable

from toolserver.calls.response import RenderedResponse

ENTRIES = 4096
MOST_BYTES = 32 << 20  # of all payloads; what faces derive from them takes up to twice as much again


class AnswerTable:
    """Answers by key, the most lately made last.

    Answers to pinned keys stay: those to default arguments, one for each tool. Strangers choose all the others.
    """

    def __init__(self, entries: int = ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self._entries, self._most_bytes = entries, most_bytes
        self._kept: dict[Hashable, RenderedResponse] = {}
        self._pinned: set[Hashable] = set()
        self._bytes = 0  # of the payloads

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> RenderedResponse | None:
        """The answer to a key, or None."""
        return self._kept.get(key)

    def pin(self, key: Hashable) -> None:
        """Let the answer to this key stay whatever is kept later."""
        self._pinned.add(key)

    def keep(self, key: Hashable, rendered: RenderedResponse) -> None:
        """Keep an answer in place of the key's former one; beyond a bound, forget those that were made first."""
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
