"""Arranged sources: each answers, fails or hangs as a test says, after so many seconds that take no real time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from tests.calls.parts import number_source
from toolserver.context.context import ToolContext
from toolserver.upstream.source import SourceAnswer, SourceDown, SourceError

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
A, B, C = (number_source(f"Test.{name}", fresh_s=60, keep_s=3600) for name in "ABC")


def answer(value: Any, *, age_s: float = 0, latency_ms: int | None = 1, failure: str | None = None) -> SourceAnswer:
    """An answer that is so many seconds old; one that was just asked for has a latency."""
    at = NOW - timedelta(seconds=age_s)
    return SourceAnswer(value, at, at, None, latency_ms, failure)


class Arranged:
    """A reader of arranged sources. What is not arranged fails; `asked` lists what was asked, in order."""

    def __init__(self, **fresh: Any) -> None:
        self.answers = fresh
        self.kept_answers: dict[str, SourceAnswer] = {}
        self.takes_s: dict[str, float] = {}
        self.asked: list[str] = []

    async def fresh(self, source, query, *, sla_s):
        name = source.name.removeprefix("Test.")
        self.asked.append(name)
        await anyio.sleep(self.takes_s.get(name, 0))
        found = self.answers.get(name, SourceDown("arranged", word="http_503"))
        if isinstance(found, SourceError):
            raise found
        return found if isinstance(found, SourceAnswer) else answer(found)

    async def kept(self, source, query):
        return self.kept_answers.get(source.name.removeprefix("Test."))


def context_of(reader: Arranged, **more: Any) -> ToolContext:
    return ToolContext(reader, **({"now": lambda: NOW, "sla_s": 120.0} | more))
