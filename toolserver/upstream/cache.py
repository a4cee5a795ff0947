"""Source answers kept in memory and, across restarts, on disk: typed, shared by every tool that needs them.

Only successes are kept. An answer is fresh for the source's `fresh_s`; asked for in the last fifth of that, it is
given and refreshed in the background. When a refresh fails, it may be given for `keep_s` more.
"""

import logging
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from anyio.abc import TaskGroup
from cachetools import LRUCache

from toolserver.clock import Clock
from toolserver.errors import SourceError
from toolserver.freshness import judge
from toolserver.upstream.answer import Answer
from toolserver.upstream.bodies import parsed
from toolserver.upstream.flight import SingleFlight
from toolserver.upstream.plausibility import Plausibility
from toolserver.upstream.reader import Fetched, Reader
from toolserver.upstream.source import Get, Source

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")

ENTRIES, ENTRIES_FROM_USERS = 4096, 512
REFRESH_AHEAD = 0.8


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A good exchange as it is kept on disk: the body itself, so that today's parser reads it."""

    body: bytes
    fetched_at: datetime
    validators: dict[str, str] = field(default_factory=dict)


class BodyStore(Protocol):
    """Where good bodies survive a restart."""

    async def load(self, source: str, key: str) -> StoredBody | None: ...

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        """Keep it soon; never waits, never fails."""
        ...

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        """The upstream said "not modified": the body is as good as new."""
        ...


class NoStore:
    """Keeps nothing."""

    async def load(self, source: str, key: str) -> StoredBody | None:
        return None

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        return None

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Kept:
    value: Any
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    validators: dict[str, str]


class SourceCache:
    """The engine's desk: reads from memory, else from disk, else from the upstream, once for all who ask."""

    def __init__(self, reader: Reader, *, clock: Clock, tasks: TaskGroup, store: BodyStore | None = None) -> None:
        self._reader, self._clock, self._store = reader, clock, store or NoStore()
        self._flights = SingleFlight(tasks)
        self._kept: LRUCache[Hashable, _Kept] = LRUCache(ENTRIES)
        self._from_users: dict[str, LRUCache[Hashable, _Kept]] = {}
        self._unstored: LRUCache[Hashable, bool] = LRUCache(ENTRIES)  # keys known not to be on disk
        self.plausibility = Plausibility()

    async def fresh(self, source: Source[Q, R], query: Q, *, sla_s: float) -> Answer[R]:
        """A live or cached answer. Raises SourceError when there is none and none can be had."""
        key = _key(source, query)
        kept = await self._look(source, query, key)
        now = self._clock.now()
        if kept is not None:
            seen = judge(source, fetched_at=kept.fetched_at, dated=kept.dated, now=now, sla_s=0)
            if not seen.stale:
                if seen.age_s > REFRESH_AHEAD * source.fresh_s:
                    self._flights.start(key, lambda: self._refresh_ahead(source, query, key))
                return _answer(kept)
        try:
            fetched = await self._flights.do(key, lambda: self._fetch(source, query, key))
        except SourceError as error:
            if kept is None or judge(source, fetched_at=kept.fetched_at, dated=kept.dated, now=now, sla_s=sla_s).stale:
                raise
            return _answer(kept, failure=error.reason)
        return Answer(fetched.value, fetched.fetched_at, fetched.newest_at, fetched.dated, fetched.latency_ms)

    async def kept(self, source: Source[Q, R], query: Q) -> Answer[R] | None:
        """The last good answer within the keep limit."""
        kept = await self._look(source, query, _key(source, query))
        if kept is None or not self._reader.usable(source, query):
            return None
        age = (self._clock.now() - kept.fetched_at).total_seconds()
        return _answer(kept) if age <= source.fresh_s + source.keep_s else None

    async def _refresh_ahead(self, source: Source[Any, Any], query: Any, key: Hashable) -> Fetched | None:
        try:
            return await self._fetch(source, query, key)
        except SourceError:
            return None  # the reader has logged and counted it; the next call decides what to do

    async def _fetch(self, source: Source[Any, Any], query: Any, key: Hashable) -> Fetched:
        table = self._table(source)
        kept = table.get(key)
        fetched = await self._reader.fetch(source, query, kept.validators if kept else {}, kept.value if kept else None)
        self.plausibility.check(source, fetched.value, fetched.fetched_at)
        table[key] = _Kept(fetched.value, fetched.fetched_at, fetched.newest_at, fetched.dated, fetched.validators)
        self._keep_on_disk(source, key, fetched)
        return fetched

    def _keep_on_disk(self, source: Source[Any, Any], key: Hashable, fetched: Fetched) -> None:
        if source.user_input:
            return
        name = _disk_key(key)
        if fetched.body is None:
            self._store.renew(source.name, name, fetched.fetched_at)
        else:
            stored = StoredBody(fetched.body, fetched.fetched_at, fetched.validators)
            self._store.save(source.name, name, stored, keep_s=source.fresh_s + source.keep_s)

    async def _look(self, source: Source[Any, Any], query: Any, key: Hashable) -> _Kept | None:
        table = self._table(source)
        kept = table.get(key)
        if kept is not None or source.user_input or key in self._unstored:
            return kept
        stored = await self._store.load(source.name, _disk_key(key))
        kept = table.get(key) or (self._revived(source, query, stored) if stored else None)
        if kept is None:
            self._unstored[key] = True
        else:
            table[key] = kept
            self.plausibility.remember(source, kept.value, kept.fetched_at)
        return kept

    def _revived(self, source: Source[Any, Any], query: Any, stored: StoredBody) -> _Kept | None:
        """A stored body read anew. One that today's parser rejects is forgotten."""
        plan = source.request(query, {})
        request = plan if isinstance(plan, Get) else plan[0] if plan else Get("")
        try:
            value = parsed(source, request, query, stored.body, cut=source.prefix)
        except SourceError as error:
            log.info("a stored body no longer parses", extra={"source": source.name, "reason": error.reason})
            return None
        newest = source.newest(value) if source.newest else None
        dated = source.stamp(value) if source.stamp else newest
        return _Kept(value, stored.fetched_at, newest, dated, dict(stored.validators))

    def _table(self, source: Source[Any, Any]) -> LRUCache[Hashable, _Kept]:
        if not source.user_input:
            return self._kept
        table = self._from_users.get(source.name)
        if table is None:
            table = self._from_users[source.name] = LRUCache(ENTRIES_FROM_USERS)
        return table


def _answer(kept: _Kept, failure: str | None = None) -> Answer[Any]:
    return Answer(kept.value, kept.fetched_at, kept.newest_at, kept.dated, failure=failure)


def _key(source: Source[Any, Any], query: Any) -> Hashable:
    """Sources that share a name and a request function share answers; other requests under one name do not."""
    return (source.name, source.request.__qualname__, source.key(query))


def _disk_key(key: Hashable) -> str:
    return repr(key)
