"""Simulate NASA FIRMS on the wire: CSV files by satellite and region, and the area query for keys."""

import math
from collections.abc import Mapping
from typing import Any

from tools.simulated.fires import SATELLITES, Pixel, pixels, write_time
from toolserver.world.model import Ask, Reply, World, expects, serves

HOST = "firms.modaps.eosdis.nasa.gov"
FOLDERS = {"noaa-20-viirs-c2": "J1", "noaa-21-viirs-c2": "J2", "suomi-npp-viirs-c2": "SUOMI"}
REGIONS = {"USA_contiguous_and_Hawaii", "Alaska"}
COLUMNS = (
    "latitude,longitude,bright_ti4,scan,track,acq_date,acq_time,satellite,confidence,version,bright_ti5,frp,daynight"
).split(",")
AREA_COLUMNS = [*COLUMNS[:8], "instrument", *COLUMNS[8:]]
EXPECTED = 25
MISSING = "<!DOCTYPE html><html><head><title>404 Not Found</title></head><body></body></html>"

AREA_FORMS = {
    "auth": Reply.text("Invalid MAP_KEY.", 400),
    "error200": Reply.text("Invalid MAP_KEY."),
    "limited": Reply.text("Exceeding allowed transaction limit", 400),
}


@serves(
    "NASA.firms_viirs_24h",
    HOST,
    "/data/active_fire/{folder}/csv/{satellite}_VIIRS_C2_{region}_24h.csv",
    forms={"error200": Reply.text("Error: data are temporarily not available.")},
)
def file(world: World, ask: Ask) -> Reply:
    if FOLDERS.get(ask.parts["folder"]) != ask.parts["satellite"] or ask.parts["region"] not in REGIONS:
        return Reply.text(MISSING, 404, "text/html")
    return _table(world, COLUMNS, [_cells(p) for p in _of_region(world, ask)])


def _of_region(world: World, ask: Ask) -> list[Pixel]:
    alaska = ask.parts["region"] == "Alaska"
    detections = pixels(world, SATELLITES[ask.parts["satellite"]])
    return [p for p in detections if (p.state == "AK") == alaska]


@file.form("empty")
def header_only(world: World, ask: Ask) -> Reply:
    return _table(world, COLUMNS, [])


@file.form("drift")
def as_the_area_query(world: World, ask: Ask) -> Reply:
    """Return letters in place of words, no leading zeros, one more column, and all columns in another order."""
    return _table(world, AREA_COLUMNS[::-1], [_area_cells(p) for p in _of_region(world, ask)])


@serves("NASA.firms_area", HOST, "/api/area/csv/{key}/VIIRS_NOAA20_NRT/{box}/{days}", forms=AREA_FORMS)
def area(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.parts["key"]):
        return AREA_FORMS["auth"]
    detections = pixels(world, SATELLITES["J1"], 24 * int(ask.parts["days"]))
    nowhere = dict.fromkeys(AREA_COLUMNS, "0") | {
        "latitude": "",
        "longitude": "",
        "acq_date": write_time(world.now, "%Y-%m-%d"),
    }
    return _table(world, AREA_COLUMNS, [*(_area_cells(p) for p in detections), nowhere])


def _table(world: World, columns: list[str], rows: list[dict[str, Any]]) -> Reply:
    lines = [",".join(columns), *(",".join(str(row[name]) for name in columns) for row in rows)]
    return Reply.text("\n".join(lines) + "\n", content_type="text/csv", last_modified=world.now // 600 * 600)


def _cells(pixel: Pixel) -> dict[str, Any]:
    return {
        "latitude": f"{pixel.lat:.5f}",
        "longitude": f"{pixel.lon:.5f}",
        "bright_ti4": "331.58",
        "scan": "0.46",
        "track": "0.64",
        "acq_date": write_time(pixel.at, "%Y-%m-%d"),
        "acq_time": write_time(pixel.at, "%H%M"),
        "satellite": pixel.satellite.code,
        "confidence": pixel.confidence,
        "version": "2.0NRT",
        "bright_ti5": "298.07",
        "frp": f"{pixel.frp:.2f}",
        "daynight": "D" if 6 <= (pixel.at / 3600 + pixel.lon / 15) % 24 < 18 else "N",
    }


def _area_cells(pixel: Pixel) -> dict[str, Any]:
    cells = _cells(pixel)
    return cells | {
        "acq_time": str(int(cells["acq_time"])),
        "confidence": pixel.confidence[0],
        "instrument": "VIIRS",
    }


@expects("wildfires")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what `/api/wildfires` must have at this instant when the regional files answer:
    the strongest fires, each once.
    """
    distinct: list[Pixel] = []
    everything = [pixel for satellite in SATELLITES.values() for pixel in pixels(world, satellite)]
    for pixel in sorted(everything, key=lambda p: (-p.frp, p.at, p.lat, p.lon)):
        if not any(_one(pixel, other) for other in distinct):
            distinct.append(pixel)
        if len(distinct) == EXPECTED:
            break
    top = [
        {
            "lat": round(p.lat, 4),
            "lon": round(p.lon, 4),
            "frp_mw": p.frp,
            "confidence": p.confidence,
            "detected_at": write_time(p.at, "%Y-%m-%dT%H:%M:%SZ"),
            "satellite": p.satellite.name,
        }
        for p in distinct
    ]
    return {"window_hours": 24, "top": top}


def _one(pixel: Pixel, other: Pixel) -> bool:
    """Return True if two satellites saw the same fire; on this scale the earth is flat."""
    north = (pixel.lat - other.lat) * 111.195
    east = (pixel.lon - other.lon) * 111.195 * math.cos(math.radians(pixel.lat))
    return pixel.satellite != other.satellite and abs(pixel.at - other.at) <= 10800 and math.hypot(north, east) <= 1
