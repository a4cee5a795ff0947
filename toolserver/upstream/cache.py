"""Caches the answers of sources, typed, for all tools: in memory and, across restarts, in a store.

Only good answers are kept. An answer is fresh for the source's `fresh_s`; a read in the last fifth of that time
returns it and starts a refresh in the background. When refreshes fail, it may be served for `keep_s` more.
"""

import logging
from collections.abc import Awaitable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from cachetools import LRUCache

from toolserver.clock import Clock
from toolserver.core.single_flight import SingleFlight
from toolserver.upstream.body_store import BodyStore, NoStore, StoredBody
from toolserver.upstream.fetcher import Fetched, Fetcher
from toolserver.upstream.freshness import judge, judge_order
from toolserver.upstream.kept_answer import ENTRIES, ENTRIES_FROM_USERS, ROOM_FROM_USERS, KeptAnswer, measure_room
from toolserver.upstream.outlier_guard import OutlierGuard
from toolserver.upstream.reading import SourceAnswer
from toolserver.upstream.shared_fetch import NotShared, SharedFetch
from toolserver.upstream.size_guard import SizeGuard
from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceError
from toolserver.upstream.stillness_guard import StillnessGuard
from toolserver.upstream.throttle import RequestWithheld

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")

REFRESH_AHEAD = 0.8
CLOCKS_APART_S = 30.0  # the tolerated difference between clocks of instances; a body from further ahead is not used
LATER_S = 60.0  # how far away the turn of a request without a waiting caller may be


@dataclass(frozen=True, slots=True)
class _Question:
    """A query to send: its cache key, whether a caller chose it, and how long to wait for its turn."""

    source: Source[Any, Any]
    query: Any
    key: Hashable
    is_chosen: bool
    patience_s: float | None = None


class SourceCache:
    """Answers from memory, the store or the upstream, which is queried once for all concurrent reads."""

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        clock: Clock,
        tasks: TaskGroup,
        store: BodyStore | None = None,
        sizes: SizeGuard | None = None,
        shared: SharedFetch | None = None,
    ) -> None:
        self._fetcher, self._clock, self._store = fetcher, clock, store or NoStore()
        self._shared = shared or NotShared()
        self._single_flight = SingleFlight(tasks)
        self._kept: LRUCache[Hashable, KeptAnswer] = LRUCache(ENTRIES)
        self._from_users: dict[str, LRUCache[Hashable, KeptAnswer]] = {}
        self._held: dict[Hashable, anyio.Event] = {}  # of the running fetches: set when pacing makes one wait long
        self._defaults: LRUCache[Hashable, bool] = LRUCache(
            ENTRIES_FROM_USERS
        )  # queries that default arguments lead to
        self._unstored: LRUCache[Hashable, bool] = LRUCache(ENTRIES)  # keys known not to be in the store
        self.outlier_guard = OutlierGuard()
        self._stillness_guard, self.size_guard = StillnessGuard(), sizes or SizeGuard()

    async def fresh(
        self, source: Source[Q, R], query: Q, *, sla_s: float, is_chosen: bool = False, is_patient: bool = True
    ) -> SourceAnswer[R]:
        """Return a live or cached answer. Raise SourceError if none is recent enough and the fetch fails."""
        key = _key(source, query)
        is_chosen = self._is_callers_own(source, key, is_chosen)
        kept = await self._find_kept(source, query, key)
        now = self._clock.now()
        if kept is not None:
            freshness = judge(source, fetched_at=kept.fetched_at, dated=kept.dated, now=now, sla_s=0)
            if not freshness.stale:
                if freshness.age_s > REFRESH_AHEAD * source.fresh_s:
                    self._single_flight.start(key, lambda: self._fetch(source, query, key, is_chosen))
                return kept.make_answer()
        too_old = (
            kept is None or judge(source, fetched_at=kept.fetched_at, dated=kept.dated, now=now, sla_s=sla_s).stale
        )
        may_wait = kept is None or (is_patient and too_old) or not self._is_within_keep(source, kept)
        try:
            fetched = await self._fetch_once(source, query, key, is_chosen=is_chosen, may_wait=may_wait)
        except SourceError as error:
            if isinstance(error, RequestWithheld) and not is_chosen:
                self._ask_later(source, query, key)
            if kept is None or too_old:
                raise
            return kept.make_answer(error.reason)
        times = (fetched.fetched_at, fetched.newest_at, fetched.dated)
        return SourceAnswer(fetched.value, *times, fetched.latency_ms, dropped=fetched.dropped)

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Return the last good answer within the keep limit, without querying the upstream, or None."""
        kept = await self._find_kept(source, query, _key(source, query))
        if kept is None or not self._fetcher.usable(source, query):
            return None
        return kept.make_answer() if self._is_within_keep(source, kept) else None

    def _is_within_keep(self, source: Source[Any, Any], kept: KeptAnswer) -> bool:
        return (self._clock.now() - kept.fetched_at).total_seconds() <= source.fresh_s + source.keep_s

    def _is_callers_own(self, source: Source[Any, Any], key: Hashable, is_chosen: bool) -> bool:
        """Return True if a query belongs in the callers' lane. A query that default arguments lead to never does."""
        if not (source.user_input or source.few_choices):
            return False
        if not is_chosen:
            self._defaults[key] = True
        return key not in self._defaults

    async def _fetch_once(
        self, source: Source[Any, Any], query: Any, key: Hashable, *, is_chosen: bool, may_wait: bool
    ) -> Fetched:
        """Return the result of the single fetch for all concurrent reads.

        Raises:
            SourceError: the fetch failed.
            RequestWithheld: our own pacing delays the fetch, and this read may not wait. The fetch continues.
        """

        def fetch() -> Awaitable[Fetched]:
            return self._fetch(source, query, key, is_chosen)

        if may_wait:
            return await self._single_flight.do(key, fetch)
        outcome: Fetched | SourceError = RequestWithheld("its turn is some seconds away")
        held = self._held.setdefault(key, anyio.Event())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when, held, tasks.cancel_scope)
            try:
                outcome = await self._single_flight.do(key, fetch)
            except SourceError as error:
                outcome = error
            tasks.cancel_scope.cancel()
        if isinstance(outcome, SourceError):
            raise outcome
        return outcome

    def _ask_later(self, source: Source[Any, Any], query: Any, key: Hashable) -> None:
        """Send a request in its turn without a caller, because the turn may be too far away at every call."""
        self._single_flight.start(key, lambda: self._fetch(source, query, key, False, LATER_S))

    async def _fetch(
        self, source: Source[Any, Any], query: Any, key: Hashable, is_chosen: bool, patience_s: float | None = None
    ) -> Fetched:
        """Return what this instance fetched, or another instance while this one waited. Raise SourceError."""
        held = self._held.setdefault(key, anyio.Event())
        question = _Question(source, query, key, is_chosen, patience_s)

        async def ask(is_conditional: bool) -> Fetched:
            return await self._ask(question, held, is_conditional=is_conditional)

        async def take(stored: StoredBody) -> Fetched | None:
            return await self._take(question, stored)

        try:
            self._fetcher.plan_requests(source, query)
            return await self._shared.fetch(source, _store_key(key), self._newest(source, key), held, ask, take)
        finally:
            self._held.pop(key, None)

    def _newest(self, source: Source[Any, Any], key: Hashable) -> datetime:
        """Return the time after which another instance must have fetched for its answer to be used."""
        kept, oldest = self._table(source).get(key), self._clock.now() - timedelta(seconds=source.fresh_s)
        return oldest if kept is None else max(oldest, kept.fetched_at)

    async def _ask(self, asked: _Question, held: anyio.Event, *, is_conditional: bool) -> Fetched:
        source, key = asked.source, asked.key
        kept = self._table(source).get(key)
        fetched = await self._fetcher.fetch(
            source,
            asked.query,
            kept.validators if kept and is_conditional else {},
            kept.value if kept and is_conditional else None,
            is_chosen=asked.is_chosen,
            held=held,
            patience_s=asked.patience_s,
        )
        if kept is not None:
            before, since = kept.newest_at, kept.fetched_at
            judge_order(source, newest=fetched.newest_at, before=before, since=since, now=fetched.fetched_at)
        if not (asked.is_chosen or source.user_input):
            self.size_guard.check(source, _store_key(key), fetched.value, fetched.fetched_at)
        self._stillness_guard.check(source, key, fetched.value, fetched.fetched_at)
        self.outlier_guard.check(source, fetched.value, fetched.fetched_at)
        if kept is not None and fetched.body is None:
            fetched = replace(fetched, dropped=kept.dropped)
        self._keep(source, key, fetched)
        self._save(source, key, fetched)
        return fetched

    async def _take(self, asked: _Question, stored: StoredBody) -> Fetched | None:
        """Keep an answer that another instance fetched and accepted. Return None if it cannot be used here."""
        source, key = asked.source, asked.key
        kept, now = await self._parse_stored(source, asked.query, stored), self._clock.now()
        if kept is None or judge(source, fetched_at=kept.fetched_at, dated=kept.dated, now=now, sla_s=0).stale:
            return None
        self._table(source)[key] = kept = replace(kept, size=len(stored.body))
        self._remember(source, key, kept)
        times = (kept.fetched_at, kept.newest_at, kept.dated)
        fetched = Fetched(kept.value, stored.body, *times, None, kept.validators, kept.dropped)
        self._save(source, key, fetched)
        return fetched

    def _remember(self, source: Source[Any, Any], key: Hashable, kept: KeptAnswer) -> None:
        """Make the guards compare later answers with one that was already accepted."""
        self._stillness_guard.remember(source, key, kept.value, kept.fetched_at)
        self.outlier_guard.remember(source, kept.value, kept.fetched_at)

    def remember(self, source: Source[Any, Any], query: Any, fetched: Fetched) -> None:
        """Keep in memory an answer that another caller requested from the fetcher."""
        self._keep(source, _key(source, query), fetched)

    def _keep(self, source: Source[Any, Any], key: Hashable, fetched: Fetched) -> None:
        table = self._table(source)
        times = (fetched.fetched_at, fetched.newest_at, fetched.dated)
        before = table.get(key)
        size = len(fetched.body) if fetched.body is not None else before.size if before else 0
        table[key] = KeptAnswer(fetched.value, *times, fetched.validators, fetched.dropped, size)

    def _save(self, source: Source[Any, Any], key: Hashable, fetched: Fetched) -> None:
        if source.user_input:
            return
        name = _store_key(key)
        if fetched.body is None:
            self._store.renew(source.name, name, fetched.fetched_at)
        else:
            stored = StoredBody(fetched.body, fetched.fetched_at, fetched.validators)
            self._store.save(source.name, name, stored, keep_s=source.fresh_s + source.keep_s)

    async def _find_kept(self, source: Source[Any, Any], query: Any, key: Hashable) -> KeptAnswer | None:
        table = self._table(source)
        kept = table.get(key)
        if kept is not None or source.user_input or key in self._unstored:
            return kept
        name = _store_key(key)
        stored = await self._shared.find(source, name) or await self._store.load(source.name, name)
        kept = table.get(key) or (await self._parse_stored(source, query, stored) if stored else None)
        if kept is None:
            self._unstored[key] = True
        else:
            table[key] = kept
            self._remember(source, key, kept)
        return kept

    async def _parse_stored(self, source: Source[Any, Any], query: Any, stored: StoredBody) -> KeptAnswer | None:
        """Parse a stored body as the answer to the current request and keys. On failure, forget it and return None."""
        if (stored.fetched_at - self._clock.now()).total_seconds() > CLOCKS_APART_S:
            return None
        try:
            request = self._fetcher.plan_requests(source, query)[0]
            parsed = await self._fetcher.parse(source, request, query, stored.body, is_cut=source.prefix)
        except SourceError as error:
            log.info("a stored body cannot be used", extra={"source": source.name, "reason": error.reason})
            return None
        return KeptAnswer(
            parsed.value, stored.fetched_at, parsed.newest_at, parsed.dated, dict(stored.validators), parsed.dropped
        )

    def _table(self, source: Source[Any, Any]) -> LRUCache[Hashable, KeptAnswer]:
        if not source.user_input:
            return self._kept
        table = self._from_users.get(source.name)
        if table is None:
            table = self._from_users[source.name] = LRUCache(ROOM_FROM_USERS * ENTRIES_FROM_USERS, measure_room)
        return table


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _key(source: Source[Any, Any], query: Any) -> Hashable:
    """Return the cache key: sources share answers if they share a name and send the same requests."""
    return (source.name, source.request_name, source.key(query))


def _store_key(key: Hashable) -> str:
    return repr(key)
