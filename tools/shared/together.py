"""Several sources of one leg asked at once, where nothing makes one of them wait for another."""

from typing import Any

import anyio

from toolserver.context import Reading
from toolserver.errors import SourceError
from toolserver.upstream.source import Source

Question = tuple[Source[Any, Any], Any]
"""A source and what it is asked."""


async def all_of(reading: Reading, *questions: Question) -> tuple[Any, ...]:
    """Every answer. The first failure ends it, and is the one the leg fails for. Raises SourceError."""
    found = await _asked(reading, questions, to_the_end=False)
    _blame(reading, questions, found)
    return tuple(found)


async def any_of(reading: Reading, *questions: Question) -> tuple[Any, ...]:
    """Every answer, None and a note for what failed. Raises the first SourceError when all failed."""
    found = await _asked(reading, questions, to_the_end=True)
    if all(isinstance(each, SourceError) for each in found):
        _blame(reading, questions, found)
    for (source, _), each in zip(questions, found, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            reading.miss(each)
    return tuple(None if isinstance(each, SourceError) else each for each in found)


async def _asked(reading: Reading, questions: tuple[Question, ...], *, to_the_end: bool) -> list[Any]:
    found: list[Any] = [None] * len(questions)
    waiting = list(range(len(questions)))

    async def one(at: int) -> None:
        try:
            found[at] = await reading.read(*questions[at])
        except SourceError as error:
            found[at] = error
        waiting.remove(at)
        if waiting:
            reading.asked = questions[waiting[0]][0]  # who keeps the leg waiting, should it be overtaken now
        if isinstance(found[at], SourceError) and not to_the_end:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for at in range(len(questions)):
            tasks.start_soon(one, at)
    return found


def _blame(reading: Reading, questions: tuple[Question, ...], found: list[Any]) -> None:
    """Raise the first failure, if there is one, as that of its source."""
    for (source, _), each in zip(questions, found, strict=True):
        if isinstance(each, SourceError):
            reading.asked = source
            raise each
