"""Caches answers ready to send: made once for all waiting callers, identical until they expire, refreshed ahead.

A popular answer is remade shortly before it expires. The new answer takes over when the old
one expires; until then every call gets the same bytes. So does every call of all instances
that share a memory: they return the answer that one of them offered first for that time.
Answers are also kept on disk, for use after a restart.

An answer is slow if its sources may only be queried some seconds apart. Its callers would have
to wait for the pacing of requests, or get a kept answer marked stale although nothing is
wrong. An answer requested at a steady pace is therefore composed shortly before the expected
call, which costs no extra request.
"""

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError

from toolserver import __version__
from toolserver.calls.arguments import build_cache_key, is_default
from toolserver.calls.response import (
    ENCODINGS,
    AnswerFacts,
    AnswerOrigin,
    RenderedResponse,
    epoch,
    find_no_charge_reason,
    json_bytes,
)
from toolserver.calls.shared_answers import SharedResponses
from toolserver.clock import Clock
from toolserver.context.context import Surroundings, ToolContext
from toolserver.core.caller import Caller
from toolserver.core.models import iso, iso_or_none
from toolserver.core.single_flight import SingleFlight
from toolserver.errors import CallRejected
from toolserver.registry.registry import Operation, Tier
from toolserver.upstream.source import UNREADABLE, CallReader, KeptReader, SourceChanged, SourceError, SourceReader
from toolserver.upstream.throttle import HOLD_S

log = logging.getLogger(__name__)


class StoredAnswers(Protocol):
    """A store in which rendered answers outlive the process."""

    async def load_answer(self, key: str) -> Any: ...

    def save_answer(self, key: str, stored: Any, *, expires_at: float) -> None: ...


class StoredResponses:
    """The answers of a service on disk and in a shared memory; either may be missing. `space` keeps services apart."""

    def __init__(
        self,
        space: str,
        *,
        disk: StoredAnswers | None = None,
        pack: Callable[[bytes, dict[str, Any]], Any] | None = None,
        shared: SharedResponses | None = None,
    ) -> None:
        self._space, self._disk, self._pack, self._shared = f"{__version__}|{space}", disk, pack, shared

    async def load(self, key: Hashable, *, now: float, ttl_s: float) -> RenderedResponse | None:
        """Return the current answer: the shared one, otherwise the one on disk, or None."""
        shared = await self.find(key, at=now, ttl_s=ttl_s)
        if shared is not None or self._disk is None:
            return shared
        stored = await self._disk.load_answer(self._name(key))
        if not stored:
            return None
        rendered = AnswerFacts(**stored.facts).make_response(stored.payload)
        return await self._offer(key, rendered, starts_at=now, now=now, ttl_s=ttl_s)

    async def find(self, key: Hashable, *, at: float, ttl_s: float) -> RenderedResponse | None:
        """Return the answer of all instances at the time `at`, if it is known."""
        return None if self._shared is None else await self._shared.find(self._name(key), at=at, ttl_s=ttl_s)

    async def keep(
        self, key: Hashable, rendered: RenderedResponse, *, starts_at: float, now: float, ttl_s: float
    ) -> RenderedResponse:
        """Keep a newly composed answer, and return the answer of all instances from `starts_at` on."""
        if rendered.nothing or rendered.stale:
            return await self.find(key, at=starts_at, ttl_s=ttl_s) or rendered
        rendered = await self._offer(key, rendered, starts_at=starts_at, now=now, ttl_s=ttl_s)
        if self._disk is not None and self._pack is not None:
            packed = self._pack(rendered.payload, msgspec.structs.asdict(AnswerFacts.of(rendered)))
            self._disk.save_answer(self._name(key), packed, expires_at=rendered.expires_at)
        return rendered

    async def _offer(self, key: Hashable, rendered: RenderedResponse, **times: float) -> RenderedResponse:
        return rendered if self._shared is None else await self._shared.offer(self._name(key), rendered, **times)

    def _name(self, key: Hashable) -> str:
        return f"{self._space}|{key!r}"


ENTRIES = 4096
MOST_BYTES = 32 << 20  # of all payloads; data that faces derive from them takes up to twice as much in addition


class AnswerTable:
    """Answers by key, newest last.

    Answers to pinned keys are never dropped: those to default arguments, one for each tool. Callers choose the others.
    """

    def __init__(self, entries: int = ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self._entries, self._most_bytes = entries, most_bytes
        self._kept: dict[Hashable, RenderedResponse] = {}
        self._pinned: set[Hashable] = set()
        self._bytes = 0  # of the payloads

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> RenderedResponse | None:
        """Return the answer for a key, or None."""
        return self._kept.get(key)

    def pin(self, key: Hashable) -> None:
        """Exempt the answer for this key from being dropped."""
        self._pinned.add(key)

    def keep(self, key: Hashable, rendered: RenderedResponse) -> None:
        """Keep an answer, replacing the key's previous one. Above a bound, drop the oldest answers."""
        self._drop(key)
        self._put(key, rendered)
        spared = 0
        while (len(self._kept) > self._entries or self._bytes > self._most_bytes) and spared <= len(self._pinned):
            oldest = next(iter(self._kept))
            first = self._drop(oldest)
            if first is not None and oldest in self._pinned:
                self._put(oldest, first)
                spared += 1

    def _put(self, key: Hashable, rendered: RenderedResponse) -> None:
        self._kept[key] = rendered
        self._bytes += len(rendered.payload)

    def _drop(self, key: Hashable) -> RenderedResponse | None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.payload)
        return dropped


LEAD_S = 60.0  # seconds before the expected call, or half of the answer's lifetime if that is less
AGAIN_S, TRIES = 12.0, 4  # a partial answer is composed again: some hosts are queried for one source at a time


@dataclass(slots=True)
class _Rhythm:
    """The last call for a slow answer, its distance from the call before, and when the answer was last prepared."""

    operation: Operation
    ttl_s: float
    called_at: float
    interval_s: float | None = None
    prepared_at: float = 0.0
    tries: int = 0

    def expected_soon(self, now: float) -> float | None:
        """Return when the next call is expected, if that is soon and the answer is not prepared yet."""
        if self.interval_s is None or self.tries == TRIES or now - self.prepared_at < AGAIN_S:
            return None
        expected = self.called_at + self.interval_s
        return expected if 0 <= expected - now <= min(LEAD_S, self.ttl_s / 2) else None


class Expected(NamedTuple):
    """A call that is expected soon: its cache key, its operation, and its time (epoch seconds)."""

    key: Hashable
    operation: Operation
    at: float


class CallRhythm:
    """The calls for slow answers to default arguments, by cache key. All times are epoch seconds."""

    def __init__(self) -> None:
        self._rhythms: dict[Hashable, _Rhythm] = {}

    def add(self, key: Hashable, operation: Operation, ttl_s: float, called_at: float) -> None:
        """Record an answer as slow, starting with a call."""
        self._rhythms.setdefault(key, _Rhythm(operation, ttl_s, called_at))

    def note(self, key: Hashable, now: float) -> None:
        """Record a call. Calls within half a lifetime of the answer count as one, because they share its bytes."""
        rhythm = self._rhythms.get(key)
        if rhythm is None:
            return
        if now - rhythm.called_at > rhythm.ttl_s / 2:
            rhythm.interval_s = now - rhythm.called_at
        rhythm.called_at, rhythm.tries = now, 0

    def next_expected(self, now: float) -> Expected | None:
        """Return a call that is expected soon, each up to `TRIES` times because the prepared answer may be partial."""
        for key, rhythm in self._rhythms.items():
            if (at := rhythm.expected_soon(now)) is not None:
                rhythm.prepared_at, rhythm.tries = now, rhythm.tries + 1
                return Expected(key, rhythm.operation, at)
        return None


POPULAR = 2  # hits in one lifetime that justify a refresh ahead
LAST_S = 8.0  # for an answer from kept data after a tool's time has run out: it waits only for a processor
PATIENCE = 0.75  # the share of a tool's time after which it uses kept data
DEGRADED_S = 30.0  # how soon an answer with missing or unproved parts is recomposed
OFFLINE_S = 3.0  # how soon an answer from a time without a network is recomposed
RETRY_S = 10.0  # how soon a stale or empty answer is recomposed
LARGE = 64 * 1024  # from this size on, a worker thread compresses the answer before it is published


class SchemaFailure(Exception):
    """A tool returned a result that does not match its declared type."""


class ResponseCache:
    """The rendered answers of all tools, by operation and validated arguments."""

    def __init__(
        self,
        reader: SourceReader,
        *,
        clock: Clock,
        tasks: TaskGroup,
        origin: AnswerOrigin,
        hedge_after_s: float = 2.5,
        surroundings: Surroundings | None = None,
        stored: StoredResponses | None = None,
    ) -> None:
        self._reader, self._source, self._about = reader, origin.source, origin.as_json()
        self.clock = clock
        self._hedge_after_s, self._stored = hedge_after_s, stored or StoredResponses("")
        self.surroundings = surroundings or Surroundings()
        self._flights = SingleFlight(tasks)
        self._rhythm = CallRhythm()
        self.table = AnswerTable()

    def find(self, key: Hashable, now: float) -> RenderedResponse | None:
        """Return the cached answer for a key if it has not expired at `now` (epoch seconds)."""
        self._rhythm.note(key, now)
        rendered = self.table.get(key)
        if rendered is None:
            return None
        if now < rendered.expires_at:
            rendered.hits += 1
            return rendered
        if rendered.next is not None and now < rendered.next.expires_at:
            self.table.keep(key, rendered.next)
            return rendered.next
        return None

    def peek(self, operation: Operation, key: Hashable, now: float) -> RenderedResponse | None:
        """Return the cached answer if it may go out as it is, or None. Nothing waits, and nothing is made.

        An answer without data may not, nor one that is about to be remade. The answer of a
        priced tool must be charged in full.
        """
        rendered = self.find(key, now)
        if rendered is None or rendered.nothing or self.needs_refresh(rendered, now):
            return None
        return None if operation.credits and find_no_charge_reason(rendered) else rendered

    def find_newest(self, key: Hashable) -> RenderedResponse | None:
        """Return the newest answer kept for a key, expired or not, without counting a call."""
        newest = self.table.get(key)
        if newest is not None and newest.next is not None and self.clock.time() >= newest.expires_at:
            return newest.next
        return newest

    async def get(self, operation: Operation, arguments: BaseModel, key: Hashable) -> RenderedResponse:
        """Return the answer to these arguments, from the cache or newly made.

        Raises:
            SchemaFailure: the result does not match the tool's schema.
        """
        return self.fresh(operation, arguments, key) or await self.make(operation, arguments, key)

    def fresh(self, operation: Operation, arguments: BaseModel, key: Hashable) -> RenderedResponse | None:
        """Return the cached answer, or None. A popular one that is about to expire is remade in the background."""
        now = self.clock.time()
        rendered = self.find(key, now)
        if rendered is not None and self.needs_refresh(rendered, now):
            self._refresh_ahead(rendered, operation, arguments, key)
        return rendered

    async def make(self, operation: Operation, arguments: BaseModel, key: Hashable) -> RenderedResponse:
        """Make the answer after `fresh` has found none, once for all waiting callers, and cache it.

        Raises:
            SchemaFailure: the result does not match the tool's schema.
        """
        if operation.ttl(arguments) <= 0:
            return await self.compose(operation, arguments)
        return await self._flights.do(key, lambda: self._renew(operation, arguments, key))

    def refresh(self, operation: Operation) -> None:
        """Make the answer to default arguments in the background; it takes over when the cached one expires."""
        arguments = operation.arguments()
        key = build_cache_key(operation, arguments)
        self.table.pin(key)

        async def renew() -> RenderedResponse:
            rendered = await self.compose(operation, arguments)
            if (current := self.table.get(key)) is not None and self.clock.time() < current.expires_at:
                current.next = rendered = await self._keep(operation, arguments, key, rendered, after=current)
            else:
                rendered = await self._keep(operation, arguments, key, rendered)
                self.table.keep(key, rendered)
            return rendered

        self._flights.start(("ahead", key), renew)

    def prepare_expected(self) -> None:
        """Make a slow answer whose call is expected soon, in the background, unless the cached one lasts until then."""
        call = self._rhythm.next_expected(self.clock.time())
        if call is None:
            return
        rendered = self.table.get(call.key)
        if rendered is None or call.at >= max(rendered.expires_at, rendered.next.expires_at if rendered.next else 0):
            self.refresh(call.operation)

    def needs_refresh(self, rendered: RenderedResponse, now: float) -> bool:
        """Return True if a popular answer is so close to its expiry that it should be remade."""
        return now > rendered.ahead_at and rendered.next is None and rendered.hits >= POPULAR

    def _refresh_ahead(
        self, rendered: RenderedResponse, operation: Operation, arguments: BaseModel, key: Hashable
    ) -> None:
        async def renew() -> RenderedResponse:
            shared = await self._stored.find(key, at=rendered.expires_at, ttl_s=operation.ttl(arguments))
            if shared is None:
                composed = await self.compose(operation, arguments)
                shared = await self._keep(operation, arguments, key, composed, after=rendered)
            rendered.next = shared
            return shared

        self._flights.start(("ahead", key), renew)

    async def _renew(self, operation: Operation, arguments: BaseModel, key: Hashable) -> RenderedResponse:
        if is_default(operation, arguments):
            self.table.pin(key)
        rendered = await self._stored.load(key, now=self.clock.time(), ttl_s=operation.ttl(arguments))
        if rendered is None:
            composed = await self.compose(operation, arguments, is_patient=operation.tier is not Tier.FREE)
            rendered = await self._keep(operation, arguments, key, composed)
        self.table.keep(key, rendered)
        return rendered

    async def _keep(
        self,
        operation: Operation,
        arguments: BaseModel,
        key: Hashable,
        rendered: RenderedResponse,
        after: RenderedResponse | None = None,
    ) -> RenderedResponse:
        """Return the answer that all instances use when `after` has expired, or from now on if there is no `after`."""
        now = self.clock.time()
        starts_at, ttl_s = after.expires_at if after else now, operation.ttl(arguments)
        return await self._stored.keep(key, rendered, starts_at=starts_at, now=now, ttl_s=ttl_s)

    async def compose(
        self, operation: Operation, arguments: BaseModel, caller: Caller | None = None, *, is_patient: bool = True
    ) -> RenderedResponse:
        """Run the tool and render its result. Payment and account tools get the `caller`.

        Without `is_patient`, a source that the service's own pacing delays returns its kept data, if any.
        """
        reader = CallReader(self._reader, is_chosen=not is_default(operation, arguments), is_patient=is_patient)
        began = self.clock.monotonic()
        try:
            ctx, result = await self._run_in_time(operation, arguments, reader, caller)
        except CallRejected as refused:
            refused.asked_upstream = reader.has_asked
            raise
        is_late = not is_patient and self.clock.monotonic() - began > HOLD_S
        if (is_late or ctx.notes.withheld) and caller is None and is_default(operation, arguments):
            key, ttl_s = build_cache_key(operation, arguments), operation.ttl(arguments)
            self._rhythm.add(key, operation, ttl_s, ctx.now.timestamp())
        rendered = self._render(operation, ctx, _validate_result(operation, result), operation.ttl(arguments))
        if len(rendered.payload) >= LARGE:
            await anyio.to_thread.run_sync(lambda: [rendered.variant(e) for e in ENCODINGS])
        return rendered

    async def _run_in_time(
        self, operation: Operation, arguments: BaseModel, reader: SourceReader, caller: Caller | None
    ) -> tuple[ToolContext, BaseModel | None]:
        """Return the tool's result and its context. If the tool's time runs out, make the result from kept data.

        A tool uses kept data while there is time, but a process without a processor may wake up after its time.
        """
        why = f"not composed within {operation.deadline_s:g} s"
        may_repeat = operation.sources and not operation.personal
        ways: list[tuple[SourceReader, float]] = [(reader, operation.deadline_s)]
        for reads, within_s in [*ways, (KeptReader(reader, why), LAST_S)] if may_repeat else ways:
            ctx = ToolContext(
                reads,
                now=self.clock.now,
                sla_s=operation.sla_s if operation.sla_s is not None else operation.ttl(arguments),
                hedge_after_s=self._hedge_after_s,
                patience_s=PATIENCE * operation.deadline_s,
                surroundings=self.surroundings,
                caller=caller,
            )
            try:
                with anyio.fail_after(within_s):
                    return ctx, await self._run(operation, arguments, ctx)
            except TimeoutError:
                continue
        if not ctx.notes.warnings:
            ctx.warn("data", "section_unavailable", f"Nothing could be composed (timeout: {why}).")
        return ctx, None

    async def _run(self, operation: Operation, arguments: BaseModel, ctx: ToolContext) -> BaseModel | None:
        """Return the tool's result, or None (with a warning) if its sources returned nothing usable."""
        names = operation.arguments.model_fields
        values = {f"{name}_" if iskeyword(name) else name: getattr(arguments, name) for name in names}
        try:
            return await operation.function(ctx, **values)
        except SourceError as error:
            failure: SourceError = error
        except ExceptionGroup as group:
            failure = SourceError.first_of(group)
        except UNREADABLE as error:
            if not operation.sources:
                raise
            log.exception("a tool could not use the data of its sources", extra={"tool": operation.name})
            failure = SourceChanged(type(error).__name__)
        if not ctx.notes.warnings:
            ctx.warn("data", "section_unavailable", f"Nothing could be composed ({failure.reason}).")
        return None

    def _render(
        self, operation: Operation, ctx: ToolContext, payload: dict[str, Any] | None, ttl_s: float
    ) -> RenderedResponse:
        notes = ctx.notes
        nothing = payload is None or (bool(operation.sources) and not notes.used)
        was_fetched = not operation.sources or notes.oldest_fetched_at is not None  # a shipped copy alone is not
        stale = nothing or not was_fetched or notes.stale(operation.stale_share)
        body = json_bytes(self._wrap(operation, ctx, payload, nothing=nothing, stale=stale))
        wait_s = OFFLINE_S if notes.is_offline else RETRY_S if stale else DEGRADED_S if notes.degraded else ttl_s
        lifetime = min(ttl_s, wait_s, ctx.shortened_s or ttl_s)
        return RenderedResponse(
            body,
            generated_at=ctx.now.timestamp(),
            expires_at=self.clock.time() + lifetime,
            oldest_at=epoch(notes.oldest_fetched_at),
            stale=stale,
            nothing=nothing,
            no_charge="empty_result" if ctx.empty else None,
            keepable=ttl_s > 0,
        )

    def _wrap(
        self, operation: Operation, ctx: ToolContext, payload: dict[str, Any] | None, *, nothing: bool, stale: bool
    ) -> dict[str, Any]:
        notes = ctx.notes
        refreshed = notes.oldest_fetched_at or (None if operation.sources else ctx.now)
        meta = notes.meta(stale=stale) | self._about
        fields = payload if payload is not None else dict.fromkeys(operation.result.model_fields)
        warnings = {"warning": [caveat.as_json() for caveat in notes.caveats()]} if notes.warnings else {}
        if operation.personal:
            return {**fields, **warnings}
        if operation.tier is Tier.PREMIUM:
            sold = {"source": "toolserver-pro", "endpoint": operation.endpoint, "generated_at": iso(ctx.now)}
            tail = {"captured_at": iso_or_none(notes.oldest_fetched_at), "stale": stale, "_meta": meta}
            return {**sold, **fields, **warnings, **tail}
        head = {"source": self._source, "endpoint": operation.endpoint, "updated_at": iso_or_none(refreshed)}
        body = {"data": None if nothing and payload is None else payload} if operation.enveloped else fields
        return {**head, **body, "stale": stale, **warnings, "_meta": meta}


def _validate_result(operation: Operation, result: BaseModel | None) -> dict[str, Any] | None:
    """Return the result as JSON values, validated against the tool's own schema. Raise SchemaFailure."""
    if result is None:
        return None
    try:
        again = operation.result.model_validate(result.model_dump(warnings=False))
    except ValidationError as error:
        raise SchemaFailure(str(error)) from error
    return again.model_dump(mode="json")
