"""Read alternative.me's crypto Fear & Greed index, one value a day (JSON, no key, credit next to the value).

https://alternative.me/crypto/fear-and-greed-index/#api
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tools.parsing.fear_greed_index import FearGreed, read_score
from tools.parsing.fields import clean, from_epoch, number
from tools.sources.hosts import DAY, HOUR, MINUTE, other
from toolserver import Gauge, Get, Licence, Source, SourceChanged, SourceEmpty, read_rows

INDEX = "https://api.alternative.me/fng/"
LICENCE = Licence("attribution", "alternative.me", "https://alternative.me/crypto/fear-and-greed-index/#api")
ONE_DAY = timedelta(days=1)
LISTED = 31  # days: the newest, the one before, and the month that the tool's page draws


def parse(body: Any, query: None) -> FearGreed:
    """Return the newest of the listed days, with the one before it as `previous_value`."""
    if (error := body["metadata"]["error"]) is not None:
        raise SourceChanged(f"metadata.error: {clean(str(error), 60)}")
    days = sorted(read_rows(body["data"], _read_day), key=lambda day: day.at, reverse=True)
    if not days:
        raise SourceEmpty("no day")
    today, *earlier = days
    is_announced = today.left_s is not None and 0 < today.left_s <= ONE_DAY.total_seconds()
    return FearGreed(
        value=today.score,
        label=today.label,
        updated_at=today.at,
        previous_value=earlier[0].score if earlier and today.at - earlier[0].at <= 1.5 * ONE_DAY else None,
        next_update_at=today.at + ONE_DAY if is_announced else None,
        days=tuple((day.at, day.score) for day in reversed(days)),
    )


class _Day(NamedTuple):
    at: datetime
    score: int
    label: str
    left_s: float | None  # until the next value: the newest day alone has it


def _read_day(day: dict[str, Any]) -> _Day:
    label, left = clean(day["value_classification"], 40), day.get("time_until_update")
    at, score = from_epoch(day["timestamp"]), read_score(day["value"], label)
    return _Day(at, score, label, None if left is None else number(left))


FEAR_GREED = Source(
    "AlternativeMe.fear_greed",
    Get(INDEX, params={"limit": str(LISTED)}),
    parse,
    licence=LICENCE,
    hosts=other("alternative.me"),
    fresh_s=10 * MINUTE,
    keep_s=2 * DAY,
    newest=lambda index: index.updated_at,
    untrusted=True,
    newest_max_s=30 * HOUR,
    gauge=Gauge(lambda index: {"fear_greed": index.value}, 40, absolute=True),
)
