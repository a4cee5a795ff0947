"""Decides whether an answer is stale or frozen. Headers, `_meta`, `/status` and billing all use `judge`."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from toolserver.upstream.source import Source, SourceAnswer, SourceChanged, SourceFrozen

AHEAD_S = 86400  # a document may be dated up to a day ahead (time zones)
BACK_S = 3600.0  # how long a newest item must not go back in time; after that an item may have been withdrawn
STILL_S = 300.0  # seconds; a value that has to move never stays the same for this long
STILL_ENTRIES = 1024  # queries whose moving parts are remembered


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """The freshness of an answer. `age_s` counts from the fetch; `stale` also considers the age of the newest item."""

    age_s: float
    stale: bool


def judge(source: Source[Any, Any], answer: SourceAnswer[Any], *, now: datetime, sla_s: float) -> SourceFreshness:
    """Judge an answer: stale means fetched more than max(fresh_s, sla_s) ago, or dated more than `newest_max_s` ago.

    A value between `fresh_s` and the limit is cached, not stale.
    """
    age = (now - answer.fetched_at).total_seconds()
    too_old = age > max(source.fresh_s, sla_s)
    limit = source.newest_max_s
    frozen = limit is not None and answer.dated is not None and (now - answer.dated).total_seconds() > limit
    return SourceFreshness(age, too_old or frozen)


def judge_times(source: Source[Any, Any], dated: datetime | None, now: datetime) -> None:
    """Raise SourceFrozen for an answer older than the source permits, SourceChanged for one dated in the future."""
    if source.newest_max_s is not None and dated and (now - dated).total_seconds() > source.newest_max_s:
        raise SourceFrozen(f"newest is from {dated:%Y-%m-%d %H:%M}")
    if dated and (dated - now).total_seconds() > AHEAD_S:
        raise SourceChanged(f"newest is from {dated:%Y-%m-%d}, which is in the future")


def judge_order(source: Source[Any, Any], answer: SourceAnswer[Any], previous: SourceAnswer[Any]) -> None:
    """Raise SourceFrozen for an answer whose newest item is older than that of the previous one."""
    before = previous.newest_at
    elapsed_s = (answer.fetched_at - previous.fetched_at).total_seconds()
    if not source.advances or before is None or elapsed_s > BACK_S:
        return
    if answer.newest_at is None or answer.newest_at < before:
        raise SourceFrozen(f"newest went back from {before:%Y-%m-%d %H:%M}")


@dataclass(frozen=True, slots=True)
class _Still:
    value: Hashable
    since: datetime


class StillnessGuard:
    """Finds answers that no longer change: a price that no trade moves is served, but no longer updated.

    It remembers since when the moving part of each answer has been the same.
    """

    def __init__(self) -> None:
        self._standing: LRUCache[Hashable, _Still] = LRUCache(STILL_ENTRIES)

    def check(self, source: Source[Any, Any], key: Hashable, value: Any, now: datetime) -> None:
        """Remember the moving part of an answer. Raise SourceFrozen if it has not moved for too long."""
        since = self.remember(source, key, value, now)
        if since is not None and (now - since).total_seconds() > STILL_S:
            raise SourceFrozen(f"the same since {since:%Y-%m-%d %H:%M}")

    def remember(self, source: Source[Any, Any], key: Hashable, value: Any, at: datetime) -> datetime | None:
        """Remember the moving part of an accepted answer. Return since when it has been the same, if it has one."""
        if source.moves is None:
            return None
        moving, standing = source.moves(value), self._standing.get(key)
        if standing is None or standing.value != moving:
            standing = self._standing[key] = _Still(moving, at)
        return standing.since
