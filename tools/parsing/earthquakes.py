"""An earthquake, as every seismological network lists it."""

from datetime import datetime
from typing import NamedTuple

from toolserver import SourceChanged

MANY, NEAR = 10, 0.8  # each magnitude more is ten times rarer


class Quake(NamedTuple):
    """One event. `magnitude` is None until the first solution is published; `kind` tells quarry blasts apart."""

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
    significance: float | None = None  # as USGS counts it: from 600 on an event is significant


class QuakeList(NamedTuple):
    """Events in the order of the feed, and when the feed was made (None where its age does not matter)."""

    quakes: tuple[Quake, ...]
    generated: datetime | None


def newest_quake(listed: QuakeList) -> datetime | None:
    return max((quake.time for quake in listed.quakes), default=None)


def require_small(quakes: tuple[Quake, ...], floor: float) -> None:
    """Of many earthquakes most are near the smallest that is listed. Raises SourceChanged when none is."""
    magnitudes = [quake.magnitude for quake in quakes if quake.magnitude is not None]
    if len(magnitudes) >= MANY and min(magnitudes) > floor + NEAR:
        raise SourceChanged(f"the smallest of {len(magnitudes)} earthquakes is M{min(magnitudes):g}")
