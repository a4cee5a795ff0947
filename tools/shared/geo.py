"""Compute distances on the globe."""

from math import asin, cos, radians, sin, sqrt

RADIUS_KM = 6371.0


def distance_km(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Return the great-circle distance of two points."""
    north, east = radians(other_lat - lat), radians(other_lon - lon)
    half = sin(north / 2) ** 2 + cos(radians(lat)) * cos(radians(other_lat)) * sin(east / 2) ** 2
    return 2 * RADIUS_KM * asin(min(1.0, sqrt(half)))
