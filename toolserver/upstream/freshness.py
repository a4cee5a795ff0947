"""Decides whether an answer is stale. Headers, `_meta`, `/status` and billing all use this one function."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceChanged, SourceFrozen

AHEAD_S = 86400  # a document may be dated up to a day ahead (time zones)
BACK_S = 3600.0  # how long a newest item must not go back in time; after that an item may have been withdrawn


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """The freshness of an answer. `age_s` counts from the fetch; `stale` also considers the age of the newest item."""

    age_s: float
    stale: bool


def judge(
    source: Source[Any, Any], *, fetched_at: datetime, dated: datetime | None, now: datetime, sla_s: float
) -> SourceFreshness:
    """Judge an answer: stale means fetched more than max(fresh_s, sla_s) ago, or dated more than `newest_max_s` ago.

    `dated` is the time that the source is judged by: of the document or of its newest item. A value between `fresh_s`
    and the limit is cached, not stale.
    """
    age = (now - fetched_at).total_seconds()
    too_old = age > max(source.fresh_s, sla_s)
    limit = source.newest_max_s
    frozen = limit is not None and dated is not None and (now - dated).total_seconds() > limit
    return SourceFreshness(age, too_old or frozen)


def judge_times(source: Source[Any, Any], dated: datetime | None, now: datetime) -> None:
    """Raise SourceFrozen for an answer older than the source permits, SourceChanged for one dated in the future."""
    if source.newest_max_s is not None and dated and (now - dated).total_seconds() > source.newest_max_s:
        raise SourceFrozen(f"newest is from {dated:%Y-%m-%d %H:%M}")
    if dated and (dated - now).total_seconds() > AHEAD_S:
        raise SourceChanged(f"newest is from {dated:%Y-%m-%d}, which is in the future")


def judge_order(
    source: Source[Any, Any], *, newest: datetime | None, before: datetime | None, since: datetime, now: datetime
) -> None:
    """Raise SourceFrozen for an answer whose newest item is older than that of the previous one, fetched at `since`."""
    if not source.advances or before is None or (now - since).total_seconds() > BACK_S:
        return
    if newest is None or newest < before:
        raise SourceFrozen(f"newest went back from {before:%Y-%m-%d %H:%M}")
