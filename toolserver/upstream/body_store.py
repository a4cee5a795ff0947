"""Defines how the bodies of good answers are stored across restarts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stored good exchange: the raw body, so that the parser of the running version reads it."""

    body: bytes
    fetched_at: datetime
    validators: dict[str, str] = field(default_factory=dict)


class BodyStore(Protocol):
    """Keeps the last good body of each source and query across restarts."""

    async def load(self, source: str, key: str) -> StoredBody | None: ...

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        """Schedule the body to be stored. This neither waits nor raises."""
        ...

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        """Schedule an update of the stored body's time, after the upstream answered "not modified"."""
        ...


class NoStore:
    """A store that keeps nothing."""

    async def load(self, source: str, key: str) -> StoredBody | None:
        return None

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        return None

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        return None
