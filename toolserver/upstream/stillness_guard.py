"""Finds answers that no longer change: a price that no trade moves is served, but no longer updated."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceFrozen

ENTRIES = 1024
STILL_S = 300.0  # seconds; a value that has to move never stays the same for this long


@dataclass(frozen=True, slots=True)
class _Still:
    value: Hashable
    since: datetime


class StillnessGuard:
    """Remembers since when the moving part of each answer has been the same."""

    def __init__(self) -> None:
        self._standing: LRUCache[Hashable, _Still] = LRUCache(ENTRIES)

    def check(self, source: Source[Any, Any], key: Hashable, value: Any, now: datetime) -> None:
        """Remember the moving part of an answer. Raise SourceFrozen if it has not moved for too long."""
        if source.moves is None:
            return
        moving = source.moves(value)
        standing = self._standing.get(key)
        if standing is None or standing.value != moving:
            self._standing[key] = _Still(moving, now)
        elif (now - standing.since).total_seconds() > STILL_S:
            raise SourceFrozen(f"the same since {standing.since:%Y-%m-%d %H:%M}")

    def remember(self, source: Source[Any, Any], key: Hashable, value: Any, at: datetime) -> None:
        """Remember the moving part of an answer that was already accepted, without judging it."""
        if source.moves is None:
            return
        moving, standing = source.moves(value), self._standing.get(key)
        if standing is None or standing.value != moving:
            self._standing[key] = _Still(moving, at)
