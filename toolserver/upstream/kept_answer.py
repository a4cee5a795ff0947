"""Defines an answer of a source as the cache keeps it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolserver.upstream.reading import SourceAnswer

ENTRIES, ENTRIES_FROM_USERS = 4096, 512
ROOM_FROM_USERS = 8192  # average bytes of a body in the room for users' answers; fewer larger ones are kept


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A value, its times and the data that the next request needs. `size` is the size of its body in bytes."""

    value: Any
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    validators: dict[str, str]
    dropped: int = 0
    size: int = 0

    def make_answer(self, failure: str | None = None) -> SourceAnswer[Any]:
        """Return the answer to a read; `failure` says why it could not be refreshed."""
        times = (self.fetched_at, self.newest_at, self.dated)
        return SourceAnswer(self.value, *times, failure=failure, dropped=self.dropped)


def measure_room(kept: KeptAnswer) -> int:
    """Return the bytes that an answer takes of the room for users' answers."""
    return min(max(kept.size, ROOM_FROM_USERS), ROOM_FROM_USERS * ENTRIES_FROM_USERS)
