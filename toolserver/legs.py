"""Legs, the ways to get a value, and the race between them.

A leg is one way to get a value: usually one source and a pure function (`via`), or an async function that reads
several sources. In a race they are tried in order; the next one also starts while the one before is slow.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar, overload

import anyio

from toolserver.errors import SourceChanged, SourceDown, SourceError, SourceExcluded, SourceUnusable
from toolserver.freshness import judge
from toolserver.notes import SourceNote, Status
from toolserver.upstream.answer import Answer, Desk
from toolserver.upstream.source import Source

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

_UNREADABLE = (LookupError, ValueError, TypeError, ArithmeticError, AttributeError)


class Reading:
    """The sources one leg reads. `kept` makes it take what is at hand, however old, and ask nobody."""

    def __init__(
        self, desk: Desk, section: str, now: Callable[[], datetime], sla_s: float, *, kept: bool = False
    ) -> None:
        self._desk, self.section, self._now, self._sla_s, self._kept = desk, section, now, sla_s, kept
        self.notes: list[SourceNote] = []
        self.asked: Source[Any, Any] | None = None  # the last one, which is the one that failed

    async def read(self, source: Source[Q, R], query: Q = None) -> R:  # type: ignore[assignment]
        """The source's answer to the query. Raises SourceError."""
        self.asked = source
        if self._kept:
            found = await self._desk.kept(source, query)
            if found is None:
                raise SourceDown("nothing kept", word="empty")
        else:
            found = await self._desk.fresh(source, query, sla_s=self._sla_s)
        self.notes.append(self._note(source, found))
        return found.value

    async def attempt(self, source: Source[Q, R], query: Q = None, *, within_s: float | None = None) -> R | None:  # type: ignore[assignment]
        """The same for a source the leg can do without: None when it gives nothing (in time), which is noted."""
        before = self.asked
        try:
            with anyio.fail_after(within_s):
                return await self.read(source, query)
        except TimeoutError:
            self.miss(SourceDown(f"no answer in {within_s:g} s", word="timeout"))
        except SourceError as error:
            self.miss(error)
        self.asked = before  # it is not what the leg fails for
        return None

    async def at_hand(self, source: Source[Q, R], query: Q = None) -> tuple[R, SourceNote] | None:  # type: ignore[assignment]
        """What is kept of a source, unless it is stale, without asking it. Whoever uses the value adds its note."""
        try:
            found = await self._desk.kept(source, query)
        except SourceError:
            return None
        note = None if found is None else self._note(source, found)
        return None if found is None or note is None or note.status == "stale" else (found.value, note)

    def miss(self, error: SourceError) -> None:
        """Note that the source asked last gave nothing, when the leg goes on without it."""
        if self.asked is not None and not isinstance(error, SourceUnusable):
            self.notes.append(SourceNote(self.asked, self.section, "error", reason=error.reason))

    def _note(self, source: Source[Any, Any], found: Answer[Any]) -> SourceNote:
        age = judge(source, fetched_at=found.fetched_at, dated=found.dated, now=self._now(), sla_s=self._sla_s)
        status: Status = "stale" if age.stale else "live" if found.latency_ms is not None else "cached"
        return SourceNote(
            source,
            self.section,
            status,
            found.fetched_at,
            found.newest_at,
            found.latency_ms,
            found.failure,
        )


Leg: TypeAlias = Callable[[Reading], Awaitable[T]]


@overload
def via(source: Source[Q, R], query: Q = ...) -> Leg[R]: ...


@overload
def via(source: Source[Q, R], query: Q, then: Callable[[R], T]) -> Leg[T]: ...


@overload
def via(source: Source[Q, R], *, then: Callable[[R], T]) -> Leg[T]: ...


def via(source: Source[Any, Any], query: Any = None, then: Callable[[Any], Any] | None = None) -> Leg[Any]:
    """The leg that reads one source and, if given, turns its answer into what the tool wants.

    `then` may raise LookupError, ValueError, TypeError, ArithmeticError or AttributeError: the answer does not
    hold what is needed, and the next leg is tried.
    """

    async def leg(reading: Reading) -> Any:
        found = await reading.read(source, query)
        return then(found) if then else found

    return leg


async def attempted(leg: Leg[T], reading: Reading) -> T:
    """Run a leg; an answer that does not hold what the leg needs counts as a changed source."""
    try:
        return await leg(reading)
    except SourceError:
        raise
    except _UNREADABLE as error:
        raise SourceChanged(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Won(Generic[T]):
    index: int
    value: T


class Race(Generic[T]):
    """Legs tried in order, each also started when the one before has not answered for a while.

    At `give_up_at` (of the event loop's clock) the race is over, so that there is time left for what is kept.
    """

    def __init__(
        self, legs: tuple[Leg[T], ...], readings: list[Reading], hedge_after_s: float, give_up_at: float
    ) -> None:
        self._legs, self._hedge_after_s, self._give_up_at = legs, hedge_after_s, give_up_at
        self.readings = readings
        self.errors: dict[int, SourceError] = {}
        self._won: Won[T] | None = None

    async def run(self) -> Won[T] | None:
        """The first leg that answered, or None. The others are left: what they fetch still reaches the cache."""
        with anyio.CancelScope(deadline=self._give_up_at):
            await self._enter_all()
        if self._won is None:
            for index, reading in enumerate(self.readings):
                if reading.asked is not None and index not in self.errors:
                    self.errors[index] = SourceDown("no answer in the time there is", word="timeout")
        return self._won

    async def _enter_all(self) -> None:
        async with anyio.create_task_group() as tasks:

            async def enter(index: int, gave_up: anyio.Event) -> None:
                try:
                    value = await attempted(self._legs[index], self.readings[index])
                except SourceError as error:
                    self.errors[index] = error
                    gave_up.set()
                    return
                if self._won is None:
                    self._won = Won(index, value)
                    tasks.cancel_scope.cancel()

            for index in range(len(self._legs)):
                gave_up = anyio.Event()
                tasks.start_soon(enter, index, gave_up)
                with anyio.move_on_after(self._hedge_after_s):
                    await gave_up.wait()

    def failures(self) -> list[SourceNote]:
        """Error notes of the legs that failed or were overtaken; a source never meant to be asked is not listed."""
        notes = []
        for index, reading in enumerate(self.readings):
            error = self.errors.get(index)
            if error is None and self._won is not None and index < self._won.index:
                error = SourceDown("overtaken", word="timeout")
            if error is not None and reading.asked is not None and not isinstance(error, SourceUnusable):
                notes.append(SourceNote(reading.asked, reading.section, "error", reason=error.reason))
        return notes

    def missed_before(self, winner: int) -> tuple[Source[Any, Any], str] | None:
        """The first leg that should have answered and did not: its source and why, in one word."""
        for index in range(winner):
            source, error = self.readings[index].asked, self.errors.get(index)
            if source is None or isinstance(error, SourceUnusable | SourceExcluded):
                continue
            return source, error.word if error else "timeout"
        return None

    def first_error(self) -> SourceError:
        real = [e for _, e in sorted(self.errors.items()) if not isinstance(e, SourceUnusable)]
        return (real or list(self.errors.values()) or [SourceUnusable("no source is usable")])[0]
