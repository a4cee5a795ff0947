"""Log the requests that reached the simulated world, and those that it could not answer."""

from collections import Counter, deque
from dataclasses import asdict, dataclass
from typing import Any

KEPT = 10_000
UNMATCHED_KEPT = 1_000
URL_KEPT = 2_000


@dataclass(slots=True)
class Entry:
    """One request. `status` is None if the connection got no answer; `ms` is None until it is answered."""

    t: float  # simulated epoch seconds
    source: str | None
    method: str
    url: str
    status: int | None = None
    ms: float | None = None
    conditional: bool = False
    fault: str | None = None  # id of the rule that fired


class RequestLog:
    """The newest requests, the count per source, and the requests that matched no simulated route."""

    def __init__(self) -> None:
        self.clear()

    def forget(self) -> None:
        """Drop the requests; counts and unmatched requests remain."""
        self._entries.clear()

    def clear(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._unmatched: deque[dict[str, Any]] = deque(maxlen=UNMATCHED_KEPT)
        self.served: Counter[str] = Counter()
        self.unmatched_count = 0

    def add(self, entry: Entry) -> None:
        entry.url = entry.url[:URL_KEPT]
        self._entries.append(entry)
        if entry.source:
            self.served[entry.source] += 1

    def served_by(self, entry: Entry, source: str) -> None:
        """Record which provider answered an entry."""
        entry.source = source
        self.served[source] += 1

    def miss(self, t: float, method: str, url: str, reason: str) -> None:
        """Record a request that should have been simulated but was not."""
        self.unmatched_count += 1
        self._unmatched.append({"t": t, "method": method, "url": url[:URL_KEPT], "reason": reason[:300]})

    def entries(self, source: str | None = None, since: float | None = None) -> list[dict[str, Any]]:
        """List entries, oldest first, only of `source` and not older than `since` (epoch s)."""
        return [
            asdict(entry)
            for entry in self._entries
            if (source is None or entry.source == source) and (since is None or entry.t >= since)
        ]

    def unmatched(self) -> list[dict[str, Any]]:
        return list(self._unmatched)
