"""Describe rocket launches, and limit how many people may plausibly be in space."""

from datetime import datetime
from typing import Literal, NamedTuple

Precision = Literal["second", "minute", "hour", "day", "month", "unknown"]


class Launch(NamedTuple):
    """One launch. `net` is the earliest time it may happen; `date_text` has the date where there is no time yet.

    `lat` and `lon` are the place of the pad in degrees, both None where the source does not state it.
    """

    id: str
    name: str
    provider: str | None
    vehicle: str | None
    mission: str | None
    mission_type: str | None
    status: str
    status_code: str | None
    net: datetime | None
    precision: Precision
    window_start: datetime | None
    window_end: datetime | None
    pad: str | None
    location: str | None
    url: str | None
    date_text: str | None = None
    updated_at: datetime | None = None
    lat: float | None = None
    lon: float | None = None


LEAST_PEOPLE, MOST_PEOPLE = 3, 30
