"""How old is too old: the one judgement that headers, `_meta`, `/status` and billing share."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolserver.upstream.source import Source


@dataclass(frozen=True, slots=True)
class Freshness:
    """`age_s` is since the bytes were obtained; `stale` takes the newest item into account too."""

    age_s: float
    stale: bool


def judge(
    source: Source[Any, Any], *, fetched_at: datetime, dated: datetime | None, now: datetime, sla_s: float
) -> Freshness:
    """Stale means older than max(fresh_s, SLA), or dated longer ago than the source's `newest_max_s`.

    `dated` is the document's own stamp or its newest item, whichever the source is judged by. Between
    `fresh_s` and the limit a value is merely cached.
    """
    age = (now - fetched_at).total_seconds()
    too_old = age > max(source.fresh_s, sla_s)
    limit = source.newest_max_s
    frozen = limit is not None and dated is not None and (now - dated).total_seconds() > limit
    return Freshness(age, too_old or frozen)
