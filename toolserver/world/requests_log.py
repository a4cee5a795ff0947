"""Log the requests that reached the simulated world, and those that it could not answer."""

from collections import Counter, deque
from dataclasses import asdict, dataclass
from typing import Any

KEPT = 10_000
UNMATCHED_KEPT = 1_000
URL_KEPT = 2_000


@dataclass(slots=True)
class LoggedRequest:
    """A request as the simulated world got it. `t` is in simulated epoch seconds; a long URL is shortened."""

    t: float
    method: str
    url: str

    def __post_init__(self) -> None:
        self.url = self.url[:URL_KEPT]


@dataclass(slots=True)
class Entry:
    """The answer to one request. `status` is None if the connection got none; `ms` is None until it is answered."""

    request: LoggedRequest
    source: str | None
    status: int | None = None
    ms: float | None = None
    conditional: bool = False
    fault: str | None = None  # id of the rule that fired

    def as_json(self) -> dict[str, Any]:
        return {
            "t": self.request.t,
            "source": self.source,
            "method": self.request.method,
            "url": self.request.url,
            "status": self.status,
            "ms": self.ms,
            "conditional": self.conditional,
            "fault": self.fault,
        }


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
        self._entries.append(entry)
        if entry.source:
            self.served[entry.source] += 1

    def served_by(self, entry: Entry, source: str) -> None:
        """Record which provider answered an entry."""
        entry.source = source
        self.served[source] += 1

    def miss(self, request: LoggedRequest, reason: str) -> None:
        """Record a request that should have been simulated but was not."""
        self.unmatched_count += 1
        self._unmatched.append({**asdict(request), "reason": reason[:300]})

    def entries(self, source: str | None = None, since: float | None = None) -> list[dict[str, Any]]:
        """List entries, oldest first, only of `source` and not older than `since` (epoch s)."""
        return [
            entry.as_json()
            for entry in self._entries
            if (source is None or entry.source == source) and (since is None or entry.request.t >= since)
        ]

    def unmatched(self) -> list[dict[str, Any]]:
        return list(self._unmatched)
