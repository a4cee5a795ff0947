"""Caches the answers of sources, typed, for all tools: in memory and, across restarts, in a store.

Only good answers are kept. An answer is fresh for the source's `fresh_s`; a read in the last
fifth of that time returns it and starts a refresh in the background. When refreshes fail, it
may be served for `keep_s` more.
"""

import logging
from collections.abc import Awaitable, Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from cachetools import LRUCache

from toolserver.clock import Clock
from toolserver.core.single_flight import SingleFlight
from toolserver.upstream.fan_out import FanOut, FanOutPart
from toolserver.upstream.fetcher import Fetched, Fetcher
from toolserver.upstream.freshness import StillnessGuard, judge, judge_order
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.member_watch import MemberWatch
from toolserver.upstream.outlier_guard import OutlierGuard, SizeGuard
from toolserver.upstream.shared_fetch import Ask, SharedFetch, Take
from toolserver.upstream.source import BodyStore, NoStore, Source, SourceAnswer, SourceError, StoredBody

log = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")

REFRESH_AHEAD = 0.8
CLOCKS_APART_S = 30.0  # the tolerated difference between clocks of instances; a body from further ahead is not used
LATER_S = 60.0  # how far away the turn of a request without a waiting caller may be
ENTRIES, ENTRIES_FROM_USERS = 4096, 512
ROOM_FROM_USERS = 8192  # average bytes of a body in the room for users' answers; fewer larger ones are kept


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer, and the validators of the next request. `size` is the size of its body in bytes."""

    answer: SourceAnswer[Any]
    validators: dict[str, str] = field(default_factory=dict)
    size: int = 0


Table = LRUCache[Hashable, CachedAnswer]


@dataclass(frozen=True, slots=True)
class _Question:
    """A query to send: its cache key, the read it is for, whether a caller chose it, how long to wait for its turn."""

    source: Source[Any, Any]
    query: Any
    key: Hashable
    part: FanOutPart
    is_chosen: bool
    patience_s: float | None = None


class NotShared:
    """The fetch of an instance that shares nothing."""

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        return None

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        return await ask(True)


def _find_refresh_age(source: Source[Any, Any]) -> float:
    """Return the age in seconds from which an answer is refreshed before it is stale.

    It is not reached if the host's budget allows one request per `fresh_s` or fewer: requests
    ahead of time would use it up, and then answers would be stale until the period is over.
    """
    return max(REFRESH_AHEAD * source.fresh_s, source.hosts.period_s / source.hosts.budget)


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
        members: MemberWatch | None = None,
        shared: SharedFetch | None = None,
    ) -> None:
        self._fetcher, self._clock, self._store = fetcher, clock, store or NoStore()
        self._shared = shared or NotShared()
        self._single_flight = SingleFlight(tasks)
        self._answers: Table = LRUCache(ENTRIES)
        self._from_users: dict[str, Table] = {}
        self._held: dict[Hashable, anyio.Event] = {}  # of the running fetches: set when pacing makes one wait long
        self._defaults: LRUCache[Hashable, bool] = LRUCache(
            ENTRIES_FROM_USERS
        )  # queries that default arguments lead to
        self._unstored: LRUCache[Hashable, bool] = LRUCache(ENTRIES)  # keys known not to be in the store
        self.outlier_guard = OutlierGuard()
        self._stillness_guard, self.size_guard = StillnessGuard(), sizes or SizeGuard()
        self.member_watch = members or MemberWatch()

    async def fresh(
        self,
        source: Source[Q, R],
        query: Q,
        *,
        sla_s: float,
        is_chosen: bool = False,
        is_patient: bool = True,
        fan_out: FanOut | None = None,
    ) -> SourceAnswer[R]:
        """Return a live or cached answer. Raise SourceError if none is recent enough and the fetch fails."""
        part = (fan_out or FanOut()).add()
        key = self._make_key(source, query)
        question = _Question(source, query, key, part, self._is_callers_own(source, key, is_chosen))
        try:
            return await self._read(question, sla_s=sla_s, is_patient=is_patient)
        except BaseException:
            part.settle()
            raise

    async def _read(self, question: _Question, *, sla_s: float, is_patient: bool) -> SourceAnswer[Any]:
        source, key = question.source, question.key
        cached = await self._find(source, question.query, key)
        now = self._clock.now()
        if cached is not None:
            freshness = judge(source, cached.answer, now=now, sla_s=0)
            if not freshness.stale:
                if freshness.age_s > _find_refresh_age(source) and not self._single_flight.is_running(key):
                    self._single_flight.start(key, lambda: self._fetch(question))
                else:
                    question.part.settle()
                return cached.answer
        too_old = cached is None or judge(source, cached.answer, now=now, sla_s=sla_s).stale
        may_wait = cached is None or (is_patient and too_old) or not self._is_within_keep(source, cached.answer)
        try:
            return (await self._fetch_once(question, may_wait=may_wait)).answer
        except SourceError as error:
            if isinstance(error, RequestWithheld) and not question.is_chosen:
                self._fetch_later(question)
            if cached is None or too_old:
                raise
            return replace(cached.answer, failure=error.reason)

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Return the last good answer within the keep limit, without querying the upstream, or None."""
        cached = await self._find(source, query, self._make_key(source, query))
        if cached is None or not self._fetcher.usable(source, query):
            return None
        return cached.answer if self._is_within_keep(source, cached.answer) else None

    def _is_within_keep(self, source: Source[Any, Any], answer: SourceAnswer[Any]) -> bool:
        return (self._clock.now() - answer.fetched_at).total_seconds() <= source.fresh_s + source.keep_s

    def _is_callers_own(self, source: Source[Any, Any], key: Hashable, is_chosen: bool) -> bool:
        """Return True if a query belongs in the callers' lane. A query that default arguments lead to never does."""
        if not (source.user_input or source.few_choices):
            return False
        if not is_chosen:
            self._defaults[key] = True
        return key not in self._defaults

    async def _fetch_once(self, question: _Question, *, may_wait: bool) -> Fetched:
        """Return the result of the single fetch for all concurrent reads.

        Raises:
            SourceError: the fetch failed.
            RequestWithheld: our own pacing delays the fetch, and this read may not wait. The fetch continues.
        """

        def fetch() -> Awaitable[Fetched]:
            return self._fetch(question)

        if self._single_flight.is_running(question.key):
            question.part.settle()
        if may_wait:
            return await self._single_flight.do(question.key, fetch)
        outcome: Fetched | SourceError = RequestWithheld("its turn is some seconds away")
        held = self._held.setdefault(question.key, anyio.Event())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when, held, tasks.cancel_scope)
            try:
                outcome = await self._single_flight.do(question.key, fetch)
            except SourceError as error:
                outcome = error
            tasks.cancel_scope.cancel()
        if isinstance(outcome, SourceError):
            raise outcome
        return outcome

    def _fetch_later(self, question: _Question) -> None:
        """Send a request in its turn without a caller, because the turn may be too far away at every call."""
        patient = replace(question, part=FanOut().add(), is_chosen=False, patience_s=LATER_S)
        self._single_flight.start(question.key, lambda: self._fetch(patient))

    async def _fetch(self, question: _Question) -> Fetched:
        """Return what this instance fetched, or another instance while this one waited. Raise SourceError."""
        source, key = question.source, question.key
        held = self._held.setdefault(key, anyio.Event())

        async def ask(is_conditional: bool) -> Fetched:
            return await self._ask(question, held, is_conditional=is_conditional)

        async def take(stored: StoredBody) -> Fetched | None:
            return await self._take(question, stored)

        try:
            self._fetcher.plan_requests(source, question.query)
            return await self._shared.fetch(source, _store_key(key), self._newest(source, key), held, ask, take)
        finally:
            question.part.settle()
            self._held.pop(key, None)

    def _newest(self, source: Source[Any, Any], key: Hashable) -> datetime:
        """Return the time after which another instance must have fetched for its answer to be used."""
        cached, oldest = self._table(source).get(key), self._clock.now() - timedelta(seconds=source.fresh_s)
        return oldest if cached is None else max(oldest, cached.answer.fetched_at)

    async def _ask(self, question: _Question, held: anyio.Event, *, is_conditional: bool) -> Fetched:
        source, key = question.source, question.key
        cached = self._table(source).get(key)
        fetched = await self._fetcher.fetch(
            source,
            question.query,
            cached.validators if cached and is_conditional else {},
            cached.answer.value if cached and is_conditional else None,
            is_chosen=question.is_chosen,
            held=held,
            patience_s=question.patience_s,
            part=question.part,
        )
        answer = fetched.answer
        if cached is not None:
            judge_order(source, answer, cached.answer)
        is_usual = not (question.is_chosen or source.user_input)
        if is_usual:
            self.size_guard.check(source, _store_key(key), answer.value, answer.fetched_at)
        self._stillness_guard.check(source, key, answer.value, answer.fetched_at)
        self.outlier_guard.check(source, answer.value, answer.fetched_at)
        if cached is not None and fetched.body is None:
            old = cached.answer
            fetched = replace(fetched, answer=replace(answer, dropped=old.dropped, missing=old.missing))
        else:
            if is_usual:
                self.member_watch.learn(source, _store_key(key), answer.value, answer.fetched_at)
            fetched = replace(fetched, answer=self._name_missing(source, answer))
        self._keep(source, key, fetched)
        self._save(source, key, fetched)
        return fetched

    async def _take(self, question: _Question, stored: StoredBody) -> Fetched | None:
        """Keep an answer that another instance fetched and accepted. Return None if it cannot be used here."""
        source, key = question.source, question.key
        answer, now = await self._parse_stored(source, question.query, stored), self._clock.now()
        if answer is None or judge(source, answer, now=now, sla_s=0).stale:
            return None
        fetched = Fetched(answer, stored.body, dict(stored.validators))
        self._keep(source, key, fetched)
        self._remember(source, key, answer)
        self._save(source, key, fetched)
        return fetched

    def _remember(self, source: Source[Any, Any], key: Hashable, answer: SourceAnswer[Any]) -> None:
        """Make the guards compare later answers with one that was already accepted."""
        self._stillness_guard.remember(source, key, answer.value, answer.fetched_at)
        self.outlier_guard.remember(source, answer.value, answer.fetched_at)

    def remember(self, source: Source[Any, Any], query: Any, fetched: Fetched) -> None:
        """Keep in memory an answer that another caller requested from the fetcher."""
        self._keep(source, self._make_key(source, query), fetched)

    def _keep(self, source: Source[Any, Any], key: Hashable, fetched: Fetched) -> None:
        table = self._table(source)
        before = table.get(key)
        size = len(fetched.body) if fetched.body is not None else before.size if before else 0
        table[key] = CachedAnswer(replace(fetched.answer, latency_ms=None), fetched.validators, size)

    def _save(self, source: Source[Any, Any], key: Hashable, fetched: Fetched) -> None:
        if source.user_input:
            return
        name, fetched_at = _store_key(key), fetched.answer.fetched_at
        if fetched.body is None:
            self._store.renew(source.name, name, fetched_at)
        else:
            stored = StoredBody(fetched.body, fetched_at, fetched.validators)
            self._store.save(source.name, name, stored, keep_s=source.fresh_s + source.keep_s)

    async def _find(self, source: Source[Any, Any], query: Any, key: Hashable) -> CachedAnswer | None:
        """Return the answer in memory, or the one in the store, which is then kept in memory."""
        table = self._table(source)
        cached = table.get(key)
        if cached is not None or source.user_input or key in self._unstored:
            return cached
        name = _store_key(key)
        stored = await self._shared.find(source, name) or await self._store.load(source.name, name)
        answer = await self._parse_stored(source, query, stored) if stored and key not in table else None
        if stored is not None and answer is not None and key not in table:
            table[key] = CachedAnswer(answer, dict(stored.validators))
            self._remember(source, key, answer)
        if key not in table:
            self._unstored[key] = True
        return table.get(key)

    async def _parse_stored(self, source: Source[Any, Any], query: Any, stored: StoredBody) -> SourceAnswer[Any] | None:
        """Parse a stored body as the answer to the current request and keys. On failure, forget it and return None."""
        if (stored.fetched_at - self._clock.now()).total_seconds() > CLOCKS_APART_S:
            return None
        try:
            request = self._fetcher.plan_requests(source, query)[0]
            parsed = await self._fetcher.parse(source, request, query, stored.body, is_cut=source.prefix)
        except SourceError as error:
            log.info("a stored body cannot be used", extra={"source": source.name, "reason": error.reason})
            return None
        return self._name_missing(source, parsed.make_answer(stored.fetched_at))

    def _name_missing(self, source: Source[Any, Any], answer: SourceAnswer[Any]) -> SourceAnswer[Any]:
        """Return the answer with the names of the members that the source no longer gives."""
        missing = self.member_watch.list_missing(source, answer.value)
        return replace(answer, missing=missing) if missing else answer

    def _make_key(self, source: Source[Any, Any], query: Any) -> Hashable:
        """Return the cache key: sources share answers if they share a name and send the same requests.

        If a source has other terms for requests with a key, what public hosts answered is not
        used where they are barred.
        """
        key = (source.name, source.request_name, source.key(query))
        return (*key, self._fetcher.rights.licence_of(source).kind) if source.terms else key

    def _table(self, source: Source[Any, Any]) -> Table:
        if not source.user_input:
            return self._answers
        table = self._from_users.get(source.name)
        if table is None:
            table = self._from_users[source.name] = LRUCache(ROOM_FROM_USERS * ENTRIES_FROM_USERS, measure_room)
        return table


def measure_room(cached: CachedAnswer) -> int:
    """Return the bytes that an answer takes of the room for users' answers."""
    return min(max(cached.size, ROOM_FROM_USERS), ROOM_FROM_USERS * ENTRIES_FROM_USERS)


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _store_key(key: Hashable) -> str:
    return repr(key)
