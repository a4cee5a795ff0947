"""Runs fallbacks: alternative ways to get one value, tried in order until one of them answers.

A fallback is usually one source and a pure function (`via`), or an async function that reads
several sources (`read_all`, `read_any`, `read_beside`). The first of a chain is the preferred
one. The next one starts when the previous one has failed or is slow (hedging).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar, overload

import anyio

from toolserver.context.provenance import Coverage, SourceNote, Status
from toolserver.upstream.freshness import judge
from toolserver.upstream.source import (
    UNREADABLE,
    Source,
    SourceAnswer,
    SourceChanged,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceReader,
    SourceUnusable,
)

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")


class FallbackReader:
    """Reads sources for one fallback and notes each read. With `kept_only` it uses only kept answers, of any age."""

    def __init__(
        self, reader: SourceReader, section: str, now: Callable[[], datetime], sla_s: float, *, kept_only: bool = False
    ) -> None:
        self._reader, self.section, self._now, self._sla_s = reader, section, now, sla_s
        self._kept_only = kept_only
        self.notes: list[SourceNote] = []
        self.lacks: tuple[str, ...] = ()  # members that the first fallback fills and this one does not
        self.asked: Source[Any, Any] | None = None  # the source read last, which is blamed if the fallback fails
        self._refusals: list[SourceError] = []  # raised by reads, each of which has noted its own source

    async def read(self, source: Source[Q, R], query: Q = None) -> R:  # type: ignore[assignment]
        """Return the source's answer to the query. Raise SourceError."""
        self.asked = source
        try:
            answer = await self._obtain(source, query)
        except SourceError as error:
            self._refusals.append(error)
            self.asked = source  # another source may have been read in the meantime
            raise
        self.notes.append(self._note(source, answer))
        return answer.value

    async def _obtain(self, source: Source[Q, R], query: Q) -> SourceAnswer[R]:
        if not self._kept_only:
            return await self._reader.fresh(source, query, sla_s=self._sla_s)
        answer = await self._reader.kept(source, query)
        if answer is None:
            raise SourceDown("nothing kept", word="empty")
        return answer

    def list_blamed(self, error: SourceError) -> list[Source[Any, Any]]:
        """Return the failed sources: the one read last, or all that were read if their answers do not fit together."""
        if self.asked is None or isinstance(error, SourceUnusable):
            return []
        read = [note.source for note in self.notes if note.used]
        is_judged = not isinstance(error, SourceDown) and all(error is not refusal for refusal in self._refusals)
        return list(dict.fromkeys([self.asked, *read])) if is_judged else [self.asked]

    async def attempt(self, source: Source[Q, R], query: Q = None, *, within_s: float | None = None) -> R | None:  # type: ignore[assignment]
        """Read an optional source. Return None, with an error note, if it fails or takes too long."""
        before = self.asked
        try:
            with anyio.fail_after(within_s):
                answer = await self.read(source, query)
            self.asked = before or source
            return answer
        except TimeoutError:
            self.note_failure(SourceDown(f"no answer within {within_s:g} s", word="timeout"))
        except SourceError as error:
            self.note_failure(error)
        self.asked = before  # an optional source is not to blame if the fallback fails
        return None

    async def read_kept(self, source: Source[Q, R], query: Q = None) -> tuple[R, SourceNote] | None:  # type: ignore[assignment]
        """Return a source's kept answer with its note, or None if there is none or it is stale.

        The source is not queried, and the note is not added: a caller that uses the value adds it.
        """
        try:
            answer = await self._reader.kept(source, query)
        except SourceError:
            return None
        note = None if answer is None else self._note(source, answer)
        return None if answer is None or note is None or note.status == "stale" else (answer.value, note)

    def note_failure(self, error: SourceError) -> None:
        """Add an error note for the source read last, if the fallback continues without it."""
        if self.asked is not None and not isinstance(error, SourceUnusable):
            self.notes.append(SourceNote(self.asked, self.section, "error", reason=error.reason))

    def _note(self, source: Source[Any, Any], answer: SourceAnswer[Any]) -> SourceNote:
        age = judge(source, answer, now=self._now(), sla_s=self._sla_s)
        status: Status = "stale" if age.stale else "live" if answer.latency_ms is not None else "cached"
        part = source.covers(answer.value) if source.covers else None
        coverage = Coverage(part, answer.dropped, answer.missing)
        return SourceNote(source, self.section, status, answer.fetched_at, answer.failure, coverage=coverage)


Fallback: TypeAlias = Callable[[FallbackReader], Awaitable[T]]


@overload
def via(source: Source[Q, R], query: Q = ...) -> Fallback[R]: ...


@overload
def via(source: Source[Q, R], query: Q, then: Callable[[R], T]) -> Fallback[T]: ...


@overload
def via(source: Source[Q, R], *, then: Callable[[R], T]) -> Fallback[T]: ...


def via(source: Source[Any, Any], query: Any = None, then: Callable[[Any], Any] | None = None) -> Fallback[Any]:
    """Make a fallback that reads one source and passes its answer through `then`, if given.

    LookupError, ValueError, TypeError, ArithmeticError or AttributeError raised by `then`
    means that the answer does not contain the needed data: the next fallback is tried.
    """

    async def fallback(reading: FallbackReader) -> Any:
        answer = await reading.read(source, query)
        return then(answer) if then else answer

    return fallback


async def attempt(fallback: Fallback[T], reading: FallbackReader) -> T:
    """Run a fallback. Raise SourceError: SourceChanged if an answer does not contain the data it needs."""
    try:
        return await fallback(reading)
    except SourceError:
        raise
    except UNREADABLE as error:
        raise SourceChanged(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class FallbackResult(Generic[T]):
    """The value of the fallback that answered, and its position in the chain."""

    index: int
    value: T


class FallbackChain(Generic[T]):
    """Runs fallbacks in order. Each also starts if the previous one has not answered within `hedge_after_s`.

    At `give_up_at` (on the event loop's clock) the chain is cancelled, which leaves time to read kept answers.
    """

    def __init__(
        self,
        fallbacks: tuple[Fallback[T], ...],
        readings: list[FallbackReader],
        hedge_after_s: float,
        give_up_at: float,
    ) -> None:
        self._fallbacks = fallbacks
        self._hedge_after_s = hedge_after_s
        self._give_up_at = give_up_at
        self.readings = readings
        self.errors: dict[int, SourceError] = {}
        self._result: FallbackResult[T] | None = None

    async def run(self) -> FallbackResult[T] | None:
        """Return the first answer, or None. The other fallbacks are cancelled; their fetches still reach the cache."""
        with anyio.CancelScope(deadline=self._give_up_at):
            await self._start_all()
        if self._result is None:
            for index, reading in enumerate(self.readings):
                if reading.asked is not None and index not in self.errors:
                    self.errors[index] = SourceDown("no answer in the available time", word="timeout")
        return self._result

    async def _start_all(self) -> None:
        last = len(self._fallbacks) - 1
        if last == 0:  # which is the case of most sections, and costs no task
            await self._run_one(0)
            return
        async with anyio.create_task_group() as tasks:

            async def run_one(index: int, failed: anyio.Event) -> None:
                if not await self._run_one(index):
                    failed.set()
                else:
                    tasks.cancel_scope.cancel()

            for index in range(len(self._fallbacks)):
                failed = anyio.Event()
                tasks.start_soon(run_one, index, failed)
                if index < last:
                    with anyio.move_on_after(self._hedge_after_s):
                        await failed.wait()

    async def _run_one(self, index: int) -> bool:
        """Run a fallback and keep its value, unless another was faster, or its error. Return True for a value."""
        try:
            value = await attempt(self._fallbacks[index], self.readings[index])
        except SourceError as error:
            self.errors[index] = error
            return False
        if self._result is None:
            self._result = FallbackResult(index, value)
        return True

    def list_failures(self) -> list[SourceNote]:
        """Return error notes of the fallbacks that failed or were overtaken, except those without an API key."""
        notes = []
        for index, reading in enumerate(self.readings):
            error = self.errors.get(index)
            if error is None and self._result is not None and index < self._result.index:
                error = SourceDown("overtaken", word="timeout")
            if error is not None:
                blamed = reading.list_blamed(error)
                notes += [SourceNote(each, reading.section, "error", reason=error.reason) for each in blamed]
        return notes

    def find_missed(self, winner: int) -> tuple[Source[Any, Any], str] | None:
        """Return the source of the first fallback before the winner that failed to answer, and the reason in a word."""
        for index in range(winner):
            source, error = self.readings[index].asked, self.errors.get(index)
            if source is None or isinstance(error, SourceUnusable | SourceExcluded):
                continue
            return source, error.word if error else "timeout"
        return None

    def choose_error(self) -> SourceError:
        """Return the first failure, preferably that of a usable source."""
        real = [e for _, e in sorted(self.errors.items()) if not isinstance(e, SourceUnusable)]
        return (real or list(self.errors.values()) or [SourceUnusable("no source is usable")])[0]


def lacking(fallback: Fallback[T], *members: str) -> Fallback[T]:
    """Return the fallback, which never fills these members of an answer, as the first of its chain does.

    If it is used, the warning of that names them.
    """

    async def run(reading: FallbackReader) -> T:
        value = await fallback(reading)
        reading.lacks = members
        return value

    return run


U = TypeVar("U")
P = TypeVar("P")
S = TypeVar("S")

BUDGET_S = 9.0  # for all fallbacks of a section together, so that a slow chain does not cost the whole payload
GRACE_S = 0.3  # for a fallback after that: enough to use kept data, but not to fetch

Question = tuple[Source[Any, Any], Any]
"""A source and its query."""


def limit_time(fallbacks: tuple[Fallback[T], ...], seconds: float = BUDGET_S) -> tuple[Fallback[T], ...]:
    """Return the fallbacks with a limit of `seconds` from now. Kept data can still be used after that."""
    ends = anyio.current_time() + seconds

    def limited(fallback: Fallback[T]) -> Fallback[T]:
        async def run(reading: FallbackReader) -> T:
            try:
                with anyio.fail_after(max(ends - anyio.current_time(), GRACE_S)):
                    return await fallback(reading)
            except TimeoutError:
                raise SourceDown("out of time", word="timeout") from None

        return run

    return tuple(limited(fallback) for fallback in fallbacks)


def convert_fallback(fallback: Fallback[T], then: Callable[[T], U]) -> Fallback[U]:
    """Return the fallback with its value converted by `then`, which may raise the same exceptions as in `via`."""

    async def run(reading: FallbackReader) -> U:
        return then(await fallback(reading))

    return run


def delay_second(first: Fallback[T], second: Fallback[T], wait_s: float) -> tuple[Fallback[T], Fallback[T]]:
    """Return the two fallbacks, for a first source that is slow because of our own pacing.

    If the second starts only because the first is slow, it waits up to `wait_s` seconds for the first to fail.
    """
    failed = anyio.Event()  # not set if the first has answered, because the second is then not needed

    async def one(reading: FallbackReader) -> T:
        try:
            return await first(reading)
        except BaseException:
            failed.set()
            raise

    async def other(reading: FallbackReader) -> T:
        with anyio.move_on_after(wait_s):
            await failed.wait()
        return await second(reading)

    return one, other


async def read_all(reading: FallbackReader, *questions: Question) -> tuple[Any, ...]:
    """Read all at once and return every answer. The first failure ends the others. Raise SourceError."""
    answers = await _ask_together(reading, questions, needed=len(questions))
    _blame(reading, questions, answers)
    return tuple(answers)


async def read_any(reading: FallbackReader, *questions: Question) -> tuple[Any, ...]:
    """Read all at once and return every answer, or None for a failure, which is noted.

    Raises the first SourceError if all failed.
    """
    answers = await _ask_together(reading, questions, needed=0)
    if all(isinstance(each, SourceError) for each in answers):
        _blame(reading, questions, answers)
    for (source, _), each in zip(questions, answers, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            reading.note_failure(each)
    return tuple(None if isinstance(each, SourceError) else each for each in answers)


async def read_beside(
    reading: FallbackReader, question: tuple[Source[Q, R], Q], proof: tuple[Source[P, S], P]
) -> tuple[R, S | SourceError]:
    """Read an answer and, at the same time, its proof, or the proof's SourceError, which is noted.

    Raises SourceError if the question itself fails, regardless of the proof.
    """
    questions = (question, proof)
    answers = await _ask_together(reading, questions, needed=1)
    _blame(reading, questions[:1], answers[:1])
    if isinstance(answers[1], SourceError):
        reading.asked = proof[0]
        reading.note_failure(answers[1])
    reading.asked = question[0]
    return answers[0], answers[1]


async def _ask_together(reading: FallbackReader, questions: tuple[Question, ...], *, needed: int) -> list[Any]:
    """Read all at once. Return each answer or its SourceError. A failure of the first `needed` ends the others."""
    answers: list[Any] = [None] * len(questions)
    waiting = list(range(len(questions)))

    async def one(at: int) -> None:
        try:
            answers[at] = await reading.read(*questions[at])
        except SourceError as error:
            answers[at] = error
        waiting.remove(at)
        if waiting:
            reading.asked = questions[waiting[0]][0]  # the source to name if the fallback is overtaken now
        if isinstance(answers[at], SourceError) and at < needed:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for at in range(len(questions)):
            tasks.start_soon(one, at)
    return answers


def _blame(reading: FallbackReader, questions: tuple[Question, ...], answers: list[Any]) -> None:
    """Raise the first failure, if any, and blame its source."""
    for (source, _), each in zip(questions, answers, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            raise each
