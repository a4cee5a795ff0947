"""Read alternative.me's crypto Fear & Greed index, one value a day (JSON, no key, credit next to the value).

https://alternative.me/crypto/fear-and-greed-index/#api
"""

from datetime import datetime, timedelta
from typing import Any

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
    dated = sorted(read_rows(body["data"], _date), key=lambda day: day[0], reverse=True)
    if not dated:
        raise SourceEmpty("no day")
    updated, today = dated[0]
    days = [day for _, day in dated]
    label = clean(today["value_classification"], 40)
    return FearGreed(
        value=read_score(today["value"], label),
        label=label,
        updated_at=updated,
        previous_value=read_score(days[1]["value"], days[1]["value_classification"]) if len(days) > 1 else None,
        next_update_at=updated + ONE_DAY if _counts_down(today) else None,
        days=read_rows(reversed(days), _day),
    )


def _date(day: dict[str, Any]) -> tuple[datetime, dict[str, Any]]:
    return from_epoch(day["timestamp"]), day


def _day(day: dict[str, Any]) -> tuple[datetime, int]:
    return from_epoch(day["timestamp"]), read_score(day["value"], day["value_classification"])


def _counts_down(today: dict[str, Any]) -> bool:
    """Return True if the next value is announced: the countdown must end within a day after this value."""
    left = today.get("time_until_update")
    return left is not None and 0 < number(left) <= ONE_DAY.total_seconds()


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
