"""Describe points on the globe as callers give them, rounded so that callers can share answers, and their distances."""

from math import asin, cos, radians, sin, sqrt
from typing import Annotated, NamedTuple

from pydantic import Field

Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]


class Place(NamedTuple):
    """A point in degrees, both rounded to two decimals (about a kilometre)."""

    lat: float
    lon: float


class Located(NamedTuple):
    """A place with a name. `region` is a state or province.

    `weight` says how likely the place is meant by its name: its population, or a multiple that grows with its renown.
    """

    name: str
    region: str | None
    country: str | None
    country_code: str | None
    weight: float
    place: Place
    timezone: str | None = None

    @property
    def full_name(self) -> str:
        return ", ".join(part for part in (self.name, self.region, self.country) if part)


RADIUS_KM = 6371.0  # of the Earth
DEFAULT = Place(34.05, -118.24)  # Los Angeles


def two_decimals(degrees: float) -> float:
    """Round to two decimals, with -0.0 as 0.0."""
    return round(degrees, 2) + 0.0


def distance_km(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Return the great-circle distance of two points."""
    north, east = radians(other_lat - lat), radians(other_lon - lon)
    half = sin(north / 2) ** 2 + cos(radians(lat)) * cos(radians(other_lat)) * sin(east / 2) ** 2
    return 2 * RADIUS_KM * asin(min(1.0, sqrt(half)))
