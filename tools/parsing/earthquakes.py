"""Describe an earthquake, as every seismological network lists it."""

from datetime import datetime
from typing import NamedTuple

from toolserver import SourceChanged

MANY, NEAR = 10, 0.8  # earthquakes become ten times rarer with each magnitude


class Quake(NamedTuple):
    """One event. `magnitude` is None until the first solution is published; `kind` marks quarry blasts."""

    id: str
    magnitude: float | None
    place: str
    time: datetime
    depth_km: float | None
    lat: float | None
    lon: float | None
    kind: str
    url: str | None
    tsunami: bool | None = None
    magnitude_type: str | None = None
    status: str | None = None
    updated: datetime | None = None
    significance: float | None = None  # USGS's own measure: an event is significant above 600


class QuakeList(NamedTuple):
    """Events in the order of the feed, and when the feed was made (None where its age does not matter)."""

    quakes: tuple[Quake, ...]
    generated: datetime | None


def newest_quake(listed: QuakeList) -> datetime | None:
    return max((quake.time for quake in listed.quakes), default=None)


def require_small(quakes: tuple[Quake, ...], floor: float) -> None:
    """Raise SourceChanged when a long list has no earthquake near `floor`: most earthquakes of
    a list are near its minimum.
    """
    magnitudes = [quake.magnitude for quake in quakes if quake.magnitude is not None]
    if len(magnitudes) >= MANY and min(magnitudes) > floor + NEAR:
        raise SourceChanged(f"the smallest of {len(magnitudes)} earthquakes is M{min(magnitudes):g}")
