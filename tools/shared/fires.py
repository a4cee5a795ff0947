"""Merge the fire detections of several satellites into one list: the past day's, each fire once, strongest first."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import floor

from tools.shared.geo import distance_km
from tools.sources.firms import Detection

WINDOW = timedelta(hours=24)
SAME_KM, SAME_TIME = 1.0, timedelta(hours=3)
CELL_LAT, CELL_LON = 0.01, 0.05  # degrees, each more than that distance, as far north as there is land


def recent(detections: Iterable[Detection], now: datetime) -> list[Detection]:
    """Return the detections of the past 24 hours."""
    return [fire for fire in detections if now - WINDOW <= fire.time]


def distinct(detections: Iterable[Detection]) -> list[Detection]:
    """Return detections, strongest first, without those that are near a stronger one of another satellite in place and
    time.
    """
    fires: list[Detection] = []
    by_cell: defaultdict[tuple[int, int], list[Detection]] = defaultdict(list)
    for fire in sorted(detections, key=lambda fire: (-fire.frp_mw, fire.time, fire.lat, fire.lon)):
        row, column = floor(fire.lat / CELL_LAT), floor(fire.lon / CELL_LON)
        near = (seen for r in (-1, 0, 1) for c in (-1, 0, 1) for seen in by_cell.get((row + r, column + c), ()))
        if not any(_same(fire, seen) for seen in near):
            fires.append(fire)
            by_cell[row, column].append(fire)
    return fires


def _same(fire: Detection, seen: Detection) -> bool:
    return (
        fire.satellite != seen.satellite
        and abs(fire.time - seen.time) <= SAME_TIME
        and distance_km(fire.lat, fire.lon, seen.lat, seen.lon) <= SAME_KM
    )
