"""Answers ready to send: composed once for all who wait, the same bytes until they expire, refreshed ahead.

An answer that is asked for often is composed anew shortly before it expires, and takes over at that moment: until
then every call gets the same bytes. What a tool composes here is kept in memory and, for other processes and
after a restart, on disk.
"""

import logging
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError

from toolserver import __version__
from toolserver.access import Caller
from toolserver.clock import Clock
from toolserver.context import ToolContext
from toolserver.errors import SourceChanged, SourceDown, SourceError
from toolserver.history import History
from toolserver.payloads import iso, iso_or_none
from toolserver.registry import Operation, Tier
from toolserver.rendering import ENCODINGS, Rendered, epoch, json_bytes
from toolserver.upstream.answer import Desk
from toolserver.upstream.bodies import UNREADABLE
from toolserver.upstream.flight import SingleFlight

log = logging.getLogger(__name__)

ENTRIES = 4096
POPULAR = 2  # hits in one lifetime that make a refresh ahead worth it
PATIENCE = 0.75  # the share of a tool's time after which it takes what is kept
RETRY_S = 10.0  # how soon an answer that is stale or empty is composed anew
LARGE = 64 * 1024  # from here on compression is done in a worker thread, before the answer is shown


class SchemaFailure(Exception):
    """A tool returned something that is not what it declares."""


class StoredAnswers(Protocol):
    """Where rendered answers survive the process."""

    async def load_answer(self, key: str) -> Any: ...

    def save_answer(self, key: str, stored: Any, *, expires_at: float) -> None: ...


class Answers:
    """The rendered answers of all tools, by operation and checked arguments."""

    def __init__(
        self,
        desk: Desk,
        *,
        clock: Clock,
        tasks: TaskGroup,
        source: str,
        simulated: bool = False,
        hedge_after_s: float = 2.5,
        host: Any = None,
        history: History | None = None,
        store: StoredAnswers | None = None,
        pack: Callable[[bytes, dict[str, Any]], Any] | None = None,
    ) -> None:
        self._desk, self._source, self._simulated = desk, source, simulated
        self.clock = clock
        self._hedge_after_s, self._host, self._store, self._pack = hedge_after_s, host, store, pack
        self._history = history or History()
        self._flights = SingleFlight(tasks)
        self._kept: dict[Hashable, Rendered] = {}  # most lately composed last

    def hit(self, key: Hashable, now: float) -> Rendered | None:
        """The answer for a key if it is at hand and has not expired at `now` (epoch seconds). No waiting, no work."""
        found = self._kept.get(key)
        if found is None:
            return None
        if now < found.expires_at:
            found.hits += 1
            return found
        if found.next is not None and now < found.next.expires_at:
            self._keep(key, found.next)
            return found.next
        return None

    def _keep(self, key: Hashable, rendered: Rendered) -> None:
        """Remember it; beyond the bound, forget what was composed longest ago."""
        self._kept.pop(key, None)
        self._kept[key] = rendered
        if len(self._kept) > ENTRIES:
            del self._kept[next(iter(self._kept))]

    async def get(self, operation: Operation, arguments: BaseModel, key: Hashable) -> Rendered:
        """The answer to these arguments.

        Raises:
            SchemaFailure: the tool broke its own schema.
        """
        found = self.hit(key, self.clock.time())
        if found is not None:
            self._refresh_ahead(found, operation, arguments, key)
            return found
        if operation.ttl(arguments) <= 0:
            return await self.compose(operation, arguments)
        return await self._flights.do(key, lambda: self._renew(operation, arguments, key))

    def refresh(self, operation: Operation) -> None:
        """Compose the answer to default arguments in the background; it takes over when the one at hand ends."""
        arguments = operation.arguments()
        key = key_of(operation, arguments)

        async def renew() -> Rendered:
            rendered = await self.compose(operation, arguments)
            if (found := self._kept.get(key)) is not None and self.clock.time() < found.expires_at:
                found.next = rendered
            else:
                self._keep(key, rendered)
            return rendered

        self._flights.start(("ahead", key), renew)

    def due(self, found: Rendered, now: float) -> bool:
        """Whether a popular answer is close enough to its end to be composed anew."""
        return now > found.ahead_at and found.next is None and found.hits >= POPULAR

    def _refresh_ahead(self, found: Rendered, operation: Operation, arguments: BaseModel, key: Hashable) -> None:
        if not self.due(found, self.clock.time()):
            return

        async def renew() -> Rendered:
            found.next = await self.compose(operation, arguments)
            self._save(key, found.next)
            return found.next

        self._flights.start(("ahead", key), renew)

    async def _renew(self, operation: Operation, arguments: BaseModel, key: Hashable) -> Rendered:
        rendered = self.hit(key, self.clock.time()) or await self._load(key)
        if rendered is None:
            rendered = await self.compose(operation, arguments)
            self._save(key, rendered)
        self._keep(key, rendered)
        return rendered

    async def compose(self, operation: Operation, arguments: BaseModel, caller: Caller | None = None) -> Rendered:
        """Run the tool and render what it made. `caller` is told to payment and account tools."""
        ctx = ToolContext(
            self._desk,
            now=self.clock.now,
            sla_s=operation.sla_s if operation.sla_s is not None else operation.ttl(arguments),
            hedge_after_s=self._hedge_after_s,
            patience_s=PATIENCE * operation.deadline_s,
            host=self._host,
            history=self._history,
            caller=caller,
        )
        result = await self._run(operation, arguments, ctx)
        payload = _checked(operation, result)
        rendered = self._rendered(operation, ctx, payload, operation.ttl(arguments))
        if len(rendered.payload) >= LARGE:
            await anyio.to_thread.run_sync(lambda: [rendered.variant(e) for e in ENCODINGS])
        return rendered

    async def _run(self, operation: Operation, arguments: BaseModel, ctx: ToolContext) -> BaseModel | None:
        """The tool's result, or None (and a warning) when its sources gave nothing to make one of."""
        values = {name: getattr(arguments, name) for name in operation.arguments.model_fields}
        try:
            with anyio.fail_after(operation.deadline_s):
                return await operation.function(ctx, **values)
        except TimeoutError:
            failure: SourceError = SourceDown(f"not composed in {operation.deadline_s:g} s", word="timeout")
        except SourceError as error:
            failure = error
        except ExceptionGroup as group:
            failure = _first(group)
        except UNREADABLE as error:
            if not operation.sources:
                raise
            log.exception("a tool could not use what its sources gave", extra={"tool": operation.name})
            failure = SourceChanged(type(error).__name__)
        if not ctx.notes.warnings:
            ctx.warn("data", "section_unavailable", f"Nothing could be composed ({failure.reason}).")
        return None

    def _rendered(
        self, operation: Operation, ctx: ToolContext, payload: dict[str, Any] | None, ttl_s: float
    ) -> Rendered:
        notes = ctx.notes
        nothing = payload is None or (bool(operation.sources) and not notes.used)
        stale = nothing or notes.stale(operation.stale_share)
        body = json_bytes(self._envelope(operation, ctx, payload, nothing=nothing, stale=stale))
        lifetime = min(ttl_s, RETRY_S if stale else ttl_s, ctx.shortened_s or ttl_s)
        now = self.clock.time()
        oldest = epoch(notes.oldest_fetched_at)
        no_charge = "empty_result" if ctx.empty else None
        keepable = ttl_s > 0
        return Rendered(body, ctx.now.timestamp(), now + lifetime, oldest, stale, nothing, no_charge, keepable=keepable)

    def _envelope(
        self, operation: Operation, ctx: ToolContext, payload: dict[str, Any] | None, *, nothing: bool, stale: bool
    ) -> dict[str, Any]:
        notes = ctx.notes
        refreshed = notes.oldest_fetched_at or (None if operation.sources else ctx.now)
        meta = notes.meta(generated_at=ctx.now, stale=stale) | ({"simulated": True} if self._simulated else {})
        fields = payload if payload is not None else dict.fromkeys(operation.result.model_fields)
        warnings = {"warning": [caveat.as_json() for caveat in notes.caveats()]} if notes.warnings else {}
        if operation.personal:
            return {**fields, **warnings}
        if operation.tier is Tier.PREMIUM:
            sold = {"source": "toolserver-pro", "endpoint": operation.endpoint, "generated_at": iso(ctx.now)}
            tail = {"captured_at": iso_or_none(notes.oldest_fetched_at), "stale": stale, "_meta": meta}
            return {**sold, **fields, **warnings, **tail}
        head: dict[str, Any] = {
            "source": self._source,
            "endpoint": operation.endpoint,
            "updated_at": iso_or_none(refreshed),
        }
        body = {"data": None if nothing and payload is None else payload} if operation.enveloped else fields
        return {**head, **body, "stale": stale, **warnings, "_meta": meta}

    def _disk_key(self, key: Hashable) -> str:
        return f"{__version__}|{self._source}|{'simulated' if self._simulated else 'live'}|{key!r}"

    async def _load(self, key: Hashable) -> Rendered | None:
        if self._store is None:
            return None
        stored = await self._store.load_answer(self._disk_key(key))
        return Rendered(stored.payload, **stored.facts) if stored else None

    def _save(self, key: Hashable, rendered: Rendered) -> None:
        if self._store is None or self._pack is None or rendered.nothing or rendered.stale:
            return
        facts = {
            "generated_at": rendered.generated_at,
            "expires_at": rendered.expires_at,
            "oldest_at": rendered.oldest_at,
        }
        self._store.save_answer(
            self._disk_key(key), self._pack(rendered.payload, facts), expires_at=rendered.expires_at
        )


def key_of(operation: Operation, arguments: BaseModel) -> Hashable:
    """What identifies an answer: the operation and every argument, defaults filled in."""
    if not operation.arguments.model_fields or not operation.reads_only:
        return operation.name  # what changes or checks something is never kept
    return (operation.name, *(_hashable(getattr(arguments, name)) for name in operation.arguments.model_fields))


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


def _checked(operation: Operation, result: BaseModel | None) -> dict[str, Any] | None:
    """The result as JSON values, validated again: a tool's word is checked, not taken."""
    if result is None:
        return None
    try:
        again = operation.result.model_validate(result.model_dump())
    except ValidationError as error:
        raise SchemaFailure(str(error)) from error
    return again.model_dump(mode="json")


def _first(group: ExceptionGroup[Any]) -> SourceError:
    """The first source error of a group; anything else in it is a fault of ours and is raised."""
    error = group.exceptions[0]
    if isinstance(error, ExceptionGroup):
        return _first(error)
    if not isinstance(error, SourceError):
        raise group
    return error
