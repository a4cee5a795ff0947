"""alternative.me crypto Fear & Greed index, one value a day (JSON, no key, credit next to the value).

https://alternative.me/crypto/fear-and-greed-index/#api
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tools.shared.numbers import number, within
from tools.shared.text import clean
from tools.shared.times import from_epoch
from tools.sources.hosts import other
from toolserver.errors import SourceChanged, SourceEmpty
from toolserver.upstream.source import Get, Keys, Licence, Source

INDEX = "https://api.alternative.me/fng/"
LICENCE = Licence("attribution", "alternative.me", "https://alternative.me/crypto/fear-and-greed-index/#api")
DAY = timedelta(days=1)


class FearGreed(NamedTuple):
    """An index between 0 (extreme fear) and 100 (extreme greed), with the publisher's own word for it."""

    value: int
    label: str
    updated_at: datetime
    previous_value: int | None = None
    next_update_at: datetime | None = None


def request(query: None, keys: Keys) -> Get:
    return Get(INDEX, params={"limit": "2"})


def parse(body: Any, query: None) -> FearGreed:
    """The newest of the listed days, and the one before it as `previous_value`."""
    if (error := body["metadata"]["error"]) is not None:
        raise SourceChanged(f"metadata.error: {clean(str(error), 60)}")
    days = sorted(body["data"], key=lambda day: number(day["timestamp"]), reverse=True)
    if not days:
        raise SourceEmpty("no day")
    today = days[0]
    label = clean(today["value_classification"], 40)
    updated = from_epoch(today["timestamp"])
    return FearGreed(
        value=score(today["value"], label),
        label=label,
        updated_at=updated,
        previous_value=score(days[1]["value"], days[1]["value_classification"]) if len(days) > 1 else None,
        next_update_at=updated + DAY if _counts_down(today) else None,
    )


def score(value: Any, label: str) -> int:
    """A whole number of 0 to 100. Raises SourceChanged for a 0 that is not called extreme fear: that one is a fault."""
    read = round(within(number(value), 0, 100))
    if read == 0 and label.casefold() != "extreme fear":
        raise SourceChanged(f"value 0 is called {label!r:.40}")
    return read


def _counts_down(today: dict[str, Any]) -> bool:
    """Whether the next value is announced: the count runs from an unknown moment, but ends a day after this value."""
    left = today.get("time_until_update")
    return left is not None and 0 < number(left) <= DAY.total_seconds()


FEAR_GREED = Source(
    "AlternativeMe.fear_greed",
    request,
    parse,
    licence=LICENCE,
    hosts=other("alternative.me"),
    fresh_s=600,
    keep_s=172800,
    timeout_s=8,
    newest=lambda index: index.updated_at,
    untrusted=True,
    newest_max_s=108000,
)
