"""Defines the result of reading a source (the value, its origin and its age), and how good answers are stored."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from toolserver.upstream.source import Source, SourceDown, SourceError

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SourceAnswer(Generic[R]):
    """One answer of a source.

    `dated` is the time that `newest_max_s` limits (the document's stamp, or its newest item).
    `latency_ms` is that of the exchange that this read started or waited for, or None if the
    value was cached. `failure` says why the value could not be refreshed, if an older one is
    returned instead. `dropped` counts the unreadable rows that are left out.
    """

    value: R
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    latency_ms: int | None = None
    failure: str | None = None
    dropped: int = 0


class SourceReader(Protocol):
    """Reads sources. The engine implements it with its cache; tests may use their own."""

    async def fresh(
        self, source: Source[Q, R], query: Q, *, sla_s: float, is_chosen: bool = False, is_patient: bool = True
    ) -> SourceAnswer[R]:
        """Return a live or cached answer, never a stale one. Concurrent reads share one fetch.

        `is_chosen` says that the caller chose arguments, so the query may be the caller's.
        Without `is_patient` a read ends if our own pacing makes it wait for long and there is
        a kept answer.

        Raises:
            SourceError: no answer is recent enough, and the fetch failed.
        """
        ...

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Return the last good answer within `keep_s`, or None, without querying the upstream."""
        ...


class CallReader:
    """Reads sources for one call, with its settings of `is_chosen` and `is_patient`."""

    def __init__(self, reader: SourceReader, *, is_chosen: bool, is_patient: bool) -> None:
        self._reader, self._is_chosen, self._is_patient = reader, is_chosen, is_patient
        self.has_asked = False  # whether a read waited for a request to an upstream, or one failed

    async def fresh(
        self, source: Source[Q, R], query: Q, *, sla_s: float, is_chosen: bool = False, is_patient: bool = True
    ) -> SourceAnswer[R]:
        """Do what `SourceReader.fresh` does, with the settings of this call."""
        try:
            answer = await self._reader.fresh(
                source,
                query,
                sla_s=sla_s,
                is_chosen=is_chosen or self._is_chosen,
                is_patient=is_patient and self._is_patient,
            )
        except SourceError:
            self.has_asked = True
            raise
        self.has_asked = self.has_asked or answer.latency_ms is not None
        return answer

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Do what `SourceReader.kept` does."""
        return await self._reader.kept(source, query)


class KeptReader:
    """Reads only kept answers, for a call whose time has run out. Every other read raises `failure`."""

    def __init__(self, reader: SourceReader, failure: SourceDown) -> None:
        self._reader, self._failure = reader, failure

    async def fresh(
        self, source: Source[Q, R], query: Q, *, sla_s: float, is_chosen: bool = False, is_patient: bool = True
    ) -> SourceAnswer[R]:
        """Always raise SourceError."""
        raise SourceDown(str(self._failure), word=self._failure.word)

    async def kept(self, source: Source[Q, R], query: Q) -> SourceAnswer[R] | None:
        """Do what `SourceReader.kept` does."""
        return await self._reader.kept(source, query)


def describe(source: Source[Any, Any]) -> dict[str, Any]:
    """Return the licence block of an entry of `_meta.sources[]`."""
    licence = source.licence
    block = {"class": licence.kind, "attribution": licence.attribution}
    return block | ({"terms_url": licence.terms_url} if licence.terms_url else {})


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stored good exchange: the raw body, so that the parser of the running version reads it."""

    body: bytes
    fetched_at: datetime
    validators: dict[str, str] = field(default_factory=dict)


class BodyStore(Protocol):
    """Keeps the last good body of each source and query across restarts."""

    async def load(self, source: str, key: str) -> StoredBody | None: ...

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        """Schedule the body to be stored. This neither waits nor raises."""
        ...

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        """Schedule an update of the stored body's time, after the upstream answered "not modified"."""
        ...


class NoStore:
    """A store that keeps nothing."""

    async def load(self, source: str, key: str) -> StoredBody | None:
        return None

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        return None

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        return None
