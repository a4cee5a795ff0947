"""Band the US air quality index, and find the reporting area nearest to a point."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from tools.parsing.places import Place
from tools.shared.geo import distance_km
from tools.sources.airnow import Area
from toolserver import SourceChanged, SourceEmpty

Band = Literal["good", "moderate", "unhealthy_sensitive", "unhealthy", "very_unhealthy", "hazardous"]
BANDS: tuple[tuple[float, Band], ...] = (
    (50, "good"),
    (100, "moderate"),
    (150, "unhealthy_sensitive"),
    (200, "unhealthy"),
    (300, "very_unhealthy"),
)
FARTHEST_KM = 60.0
AHEAD = timedelta(hours=1)  # how far a clock or the start of an hour may be ahead of ours


class Near(NamedTuple):
    """A reporting area and its distance."""

    area: Area
    distance_km: float


def aqi_band(aqi: int) -> Band:
    """Return the band of an index."""
    return next((band for most, band in BANDS if aqi <= most), "hazardous")


def nearest(areas: Iterable[Area], place: Place, now: datetime) -> Near:
    """Return the nearest reporting area.

    Raises:
        SourceEmpty: no area is within `FARTHEST_KM`.
        SourceChanged: its measurement is dated in the future.
    """
    near = min(
        (Near(area, distance_km(*place, area.lat, area.lon)) for area in areas), key=lambda near: near.distance_km
    )
    if near.distance_km > FARTHEST_KM:
        raise SourceEmpty(f"no reporting area within {FARTHEST_KM:g} km")
    if near.area.time is not None and near.area.time > now + AHEAD:
        raise SourceChanged(f"{near.area.name} is dated {near.area.time:%Y-%m-%d %H:%M}, in the future")
    return near
