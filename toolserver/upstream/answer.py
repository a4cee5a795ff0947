"""What reading a source gives: the value, where it came from and how old it is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from toolserver.upstream.source import Source

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """A source's answer.

    `dated` is what `newest_max_s` judges (the document's stamp, or its newest item). `latency_ms` is that of
    the exchange which this very read caused or waited for; None when the value was at hand.
    `failure` is why a due refresh did not happen, when an older value is given instead.
    """

    value: R
    fetched_at: datetime
    newest_at: datetime | None
    dated: datetime | None
    latency_ms: int | None = None
    failure: str | None = None


class Desk(Protocol):
    """Where answers are read. The engine has one; tests may bring their own."""

    async def fresh(self, source: Source[Q, R], query: Q, *, sla_s: float) -> Answer[R]:
        """A live or cached answer, never a stale one. Fetches when needed, once for all who wait.

        Raises:
            SourceError: nothing young enough, and the fetch failed.
        """
        ...

    async def kept(self, source: Source[Q, R], query: Q) -> Answer[R] | None:
        """The last good answer within `keep_s`, without asking the upstream."""
        ...


def describe(source: Source[Any, Any]) -> dict[str, Any]:
    """The licence block of `_meta.sources[]`."""
    licence = source.licence
    block = {"class": licence.kind, "attribution": licence.attribution}
    return block | ({"terms_url": licence.terms_url} if licence.terms_url else {})
