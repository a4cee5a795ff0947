"""Describe points on the globe as callers give them, rounded so that callers can share answers."""

from typing import Annotated, NamedTuple

from pydantic import Field

Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]


class Place(NamedTuple):
    """A point in degrees, both rounded to two decimals (about a kilometre)."""

    lat: float
    lon: float


DEFAULT = Place(34.05, -118.24)  # Los Angeles


def two_decimals(degrees: float) -> float:
    """Round to two decimals, with -0.0 as 0.0."""
    return round(degrees, 2) + 0.0
