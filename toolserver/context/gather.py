"""Combines fallbacks, and reads several sources in one fallback."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from toolserver.context.fallback import Fallback, FallbackReader
from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceDown, SourceError

T = TypeVar("T")
U = TypeVar("U")
Q = TypeVar("Q")
R = TypeVar("R")
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
    found = await _ask_together(reading, questions, needed=len(questions))
    _blame(reading, questions, found)
    return tuple(found)


async def read_any(reading: FallbackReader, *questions: Question) -> tuple[Any, ...]:
    """Read all at once and return every answer, or None for a failure, which is noted.

    Raises the first SourceError if all failed.
    """
    found = await _ask_together(reading, questions, needed=0)
    if all(isinstance(each, SourceError) for each in found):
        _blame(reading, questions, found)
    for (source, _), each in zip(questions, found, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            reading.note_failure(each)
    return tuple(None if isinstance(each, SourceError) else each for each in found)


async def read_beside(
    reading: FallbackReader, question: tuple[Source[Q, R], Q], proof: tuple[Source[P, S], P]
) -> tuple[R, S | SourceError]:
    """Read an answer and, at the same time, its proof, or the proof's SourceError, which is noted.

    Raises SourceError if the question itself fails, regardless of the proof.
    """
    questions = (question, proof)
    found = await _ask_together(reading, questions, needed=1)
    _blame(reading, questions[:1], found[:1])
    if isinstance(found[1], SourceError):
        reading.asked = proof[0]
        reading.note_failure(found[1])
    reading.asked = question[0]
    return found[0], found[1]


async def _ask_together(reading: FallbackReader, questions: tuple[Question, ...], *, needed: int) -> list[Any]:
    """Read all at once. Return each answer or its SourceError. A failure of the first `needed` ends the others."""
    found: list[Any] = [None] * len(questions)
    waiting = list(range(len(questions)))

    async def one(at: int) -> None:
        try:
            found[at] = await reading.read(*questions[at])
        except SourceError as error:
            found[at] = error
        waiting.remove(at)
        if waiting:
            reading.asked = questions[waiting[0]][0]  # the source to name if the fallback is overtaken now
        if isinstance(found[at], SourceError) and at < needed:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for at in range(len(questions)):
            tasks.start_soon(one, at)
    return found


def _blame(reading: FallbackReader, questions: tuple[Question, ...], found: list[Any]) -> None:
    """Raise the first failure, if any, and blame its source."""
    for (source, _), each in zip(questions, found, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            raise each
