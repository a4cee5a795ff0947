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
