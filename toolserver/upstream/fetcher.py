"""Sends the requests of all sources and returns checked results. Only this module talks to upstreams.

Throttling, circuit, deadline, retry, body size and redirects are handled in the same way for every source.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import anyio

from toolserver.core.shared_memory import SharedMemory
from toolserver.core.waiting_room import WaitCounts
from toolserver.upstream.decode import ParsedBody, read_body, read_times
from toolserver.upstream.fan_out import FanOutPart
from toolserver.upstream.freshness import judge_times
from toolserver.upstream.http_sender import BodyPlace, HttpSender, LargeBodies, Raw, SendingTime, judge_status
from toolserver.upstream.network_watch import NetworkWatch, NoNetwork
from toolserver.upstream.rights import EVERYTHING, Rights
from toolserver.upstream.shared_lanes import SharedLanes
from toolserver.upstream.source import (
    Connect,
    Get,
    HostRefused,
    Keys,
    NoAddress,
    NotConnected,
    Request,
    Source,
    SourceAnswer,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceLimited,
    SourceUnusable,
)
from toolserver.upstream.source_health import HostRefusals, SourceHealth, SourceHistory
from toolserver.upstream.throttle import Budget, Throttle

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one good exchange. `body` is None if the upstream answered "not modified".

    The answer's `latency_ms` is None if another instance made the exchange.
    """

    answer: SourceAnswer[Any]
    body: bytes | None
    validators: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    """The cached answer that an upstream may confirm: its value, None without one, and its validators."""

    value: Any
    validators: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Order:
    """What to fetch and how: the cached answer, lane, event, longest wait, fan-out."""

    source: Source[Any, Any]
    query: Any
    cached: _CachedAnswer
    is_chosen: bool
    held: anyio.Event | None
    patience_s: float
    part: FanOutPart | None


def _judge_life(source: Source[Any, Any], parsed: ParsedBody, now: datetime) -> None:
    """Raise SourceUnproved for an answer that has to prove that its source is alive, but does not."""
    if source.proof is not None:
        source.proof.check(parsed.value, stamp=parsed.dated if source.stamp else None, newest=parsed.newest_at, now=now)


class Fetcher:
    """Fetches from upstreams through a sender.

    `history` counts the results of each source, and `observe` gets each result with the
    seconds it took; with `memory`, pacing, budgets and circuits apply over all instances;
    `network` notices that there is no network.
    """

    def __init__(
        self,
        sender: HttpSender,
        *,
        keys: Keys,
        rights: Rights = EVERYTHING,
        observe: Callable[[str, str, float, bool], None] = lambda source, outcome, seconds, was_sent: None,
        history: SourceHistory | None = None,
        memory: SharedMemory | None = None,
        network: NetworkWatch | None = None,
    ) -> None:
        clock = sender.clock
        self._network = network or NetworkWatch((), monotonic=clock.monotonic)
        self._sender, self.announcements = sender, sender.announcements
        self.history = history or SourceHistory(clock)
        self._clock, self._keys, self.rights, self._observe = clock, keys, rights, observe
        lanes = None if memory is None else SharedLanes(memory, clock)
        self._throttle = Throttle(clock=clock, keys=keys, shared=lanes, while_waiting=self._network.end_wait_when_gone)
        self._large = LargeBodies()
        self.health = SourceHealth(clock, history=self.history, memory=memory)
        self._health_for_callers = SourceHealth(clock, is_for_callers=True, history=self.history, memory=memory)
        self.refusals = HostRefusals(clock)

    async def aclose(self) -> None:
        await self._sender.aclose()

    async def fetch(
        self,
        source: Source[Any, Any],
        query: Any,
        validators: Mapping[str, str] = MappingProxyType({}),
        cached_value: Any = None,
        *,
        is_chosen: bool = False,
        held: anyio.Event | None = None,
        patience_s: float | None = None,
        part: FanOutPart | None = None,
    ) -> Fetched:
        """Fetch an answer from the source's mirrors, in order.

        `validators` and `cached_value` are those of the cached answer. `is_chosen` says that
        a caller decided the query. `held` is set when our own pacing makes the request wait
        for long. It waits at most `patience_s`, by default the source's timeout. `part` is the
        read of a fan-out that the request is for.

        Raises:
            SourceError: no mirror returned a good answer within the source's timeout.
        """
        plan = self.plan_requests(source, query)
        health = self._health_for_callers if is_chosen else self.health
        await health.admit_among_all(source.name)
        started = time.perf_counter()
        failure: SourceError | None = None
        try:
            patience_s = patience_s or source.timeout_s
            cached = _CachedAnswer(cached_value, dict(validators))
            order = _Order(source, query, cached, is_chosen, held, patience_s, part)
            fetched = await self._try_mirrors(order, plan)
        except SourceError as error:
            failure = error
        except BaseException:
            health.record_nothing(source.name)
            raise
        if failure is not None:
            health.record_failure(source.name, failure)
            self._observe(source.name, failure.word, time.perf_counter() - started, failure.was_sent)
            raise failure.with_traceback(None)  # the traceback has the body, and callers keep the failure
        health.record_success(source.name)
        self._observe(source.name, "ok", time.perf_counter() - started, True)
        return fetched

    def usable(self, source: Source[Any, Any], query: Any) -> bool:
        """Return True if the API keys that are set and the licence policy allow a query to the source."""
        try:
            self.plan_requests(source, query)
        except SourceError:
            return False
        return True

    def count_waits(self) -> WaitCounts:
        """Return how many callers' queries wait for their turn, and how many were refused."""
        return self._throttle.count_waits()

    def list_budgets(self) -> list[Budget]:
        """Return the remaining budget of each host."""
        return self._throttle.list_budgets()

    def plan_requests(self, source: Source[Any, Any], query: Any) -> Sequence[Request]:
        """Return the requests that may answer a query, best first.

        Raises:
            SourceExcluded: the licence policy excludes the source.
            SourceUnusable: the source needs a key that is not set.
        """
        if self.rights.bars(source):
            raise SourceExcluded(source.licence.kind)
        plan = source.plan(query, self._keys)
        if plan is None:
            raise SourceUnusable(source.name)
        return self.rights.select(source, [plan] if isinstance(plan, Get) else plan)

    async def _try_mirrors(self, order: _Order, plan: Sequence[Request]) -> Fetched:
        """Try the mirrors in order, each with a share of the timeout, so that a slow one leaves time for others."""
        source = order.source
        failure: SourceError | None = None
        share_s = source.timeout_s / min(len(plan), 3)
        for request in plan:
            try:
                with self._large.reserve(SendingTime(share_s)) as place:
                    return await self._exchange(order, request, place)
            except SourceError as error:
                if failure is None or error.was_sent:  # the failure of a mirror says more than an unsent request
                    failure = error
        raise failure or SourceUnusable(source.name)

    async def _exchange(self, order: _Order, request: Request, place: BodyPlace) -> Fetched:
        source, host = order.source, urlsplit(request.url).netloc
        self.refusals.admit(host, source.name)
        if not isinstance(request, Connect):  # which measures the network itself
            await self._network.admit(request.url)
        try:
            raw = await self._send_with_retry(order, request, host, place)
        except NoAddress:
            if not order.is_chosen:
                self.refusals.record_no_address(host, source.name)
            raise
        if raw.status == 304 and order.cached.value is not None:
            parsed, body = read_times(source, order.cached.value), None
        else:
            self._judge_status(source, raw, host, is_chosen=order.is_chosen)
            parsed, body = await self.parse(source, request, order.query, raw.body, is_cut=raw.cut), raw.body
        now = self._clock.now()
        _judge_life(source, parsed, now)
        judge_times(source, parsed.dated, now)
        validators = {name: raw.headers[name] for name in ("etag", "last-modified") if name in raw.headers}
        return Fetched(parsed.make_answer(now, raw.latency_ms), body, validators or order.cached.validators)

    async def parse(
        self, source: Source[Any, Any], request: Request, query: Any, body: bytes, *, is_cut: bool
    ) -> ParsedBody:
        """Parse a body, in a worker thread if it is large. Raise SourceError."""
        return await self._large.parse(len(body), lambda: read_body(source, request, query, body, cut=is_cut))

    def _judge_status(self, source: Source[Any, Any], raw: Raw, host: str, *, is_chosen: bool) -> None:
        """Raise the SourceError for a status that is not an answer, and pause requests to the host if necessary."""
        try:
            judge_status(source, raw, self._clock.now())
        except SourceLimited as error:
            self._throttle.close(source.hosts, raw.host, error.retry_after_s, is_chosen=is_chosen)
            raise
        except HostRefused:
            if not is_chosen:
                self.refusals.record(host, source.name, raw.status)
            raise
        self.refusals.forget(host, source.name)

    async def _send_with_retry(self, order: _Order, request: Request, host: str, place: BodyPlace) -> Raw:
        """Send a request, and retry once after a short pause if the first attempt failed quickly.

        Waiting for a turn does not count toward the source's time.
        """
        for attempt in (1, 2):
            try:
                raw = await self._send_in_turn(order, request, host, place)
            except NoNetwork:
                raise
            except SourceDown as failure:
                if isinstance(failure, NotConnected):
                    await self._network.judge_failure(request.url)
                if attempt == 2 or place.time.is_mostly_over:
                    raise
            else:
                if attempt == 2 or raw.status not in (502, 503, 504):
                    return raw
            await self._clock.sleep(random.uniform(0.2, 0.6))
        raise AssertionError("unreachable")

    async def _send_in_turn(self, order: _Order, request: Request, host: str, place: BodyPlace) -> Raw:
        source = order.source
        async with self._throttle.turn(
            source.hosts,
            host,
            patience_s=order.patience_s,
            is_chosen=order.is_chosen,
            held=order.held,
            part=order.part,
        ):
            with place.time.spend():
                raw = await self._sender.send(source, request, order.cached.validators, place)
        if not isinstance(request, Connect):
            self._network.note_answer()
        return raw
