"""Simulate MET Norway on the wire: degrees Celsius, metres per second, steps of an hour and then of six."""

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from tools.simulated.sky import Sky, sky
from toolserver.world.model import Ask, Reply, World, serves

HOURLY, SIX_HOURLY = 60, 28  # steps
BY_LIGHT = {"clearsky", "fair", "partlycloudy", "rainshowers", "snowshowers"}
UNITS = {
    "air_pressure_at_sea_level": "hPa",
    "air_temperature": "celsius",
    "cloud_area_fraction": "%",
    "precipitation_amount": "mm",
    "relative_humidity": "%",
    "wind_from_direction": "degrees",
    "wind_speed": "m/s",
}

FORMS = {
    # for its User-Agent
    "geo": Reply.text("<html><head><title>403 Forbidden</title></head><body></body></html>", 403, "text/html"),
}


@serves("METNorway.locationforecast", "api.met.no", "/weatherapi/locationforecast/2.0/compact", forms=FORMS)
def compact(world: World, ask: Ask) -> Reply:
    lat, lon = float(ask.params["lat"]), float(ask.params["lon"])
    hour = world.now - world.now % 3600
    later = hour + HOURLY * 3600
    later += -later % 21600
    steps = [_step(sky(world, lat, lon, at), at, 1) for at in (hour + 3600 * i for i in range(HOURLY))]
    steps += [_step(sky(world, lat, lon, at), at, 6) for at in (later + 21600 * i for i in range(SIX_HOURLY))]
    return _feature(lat, lon, hour, steps)


@compact.form("empty")
def no_steps(world: World, ask: Ask) -> Reply:
    return _feature(float(ask.params["lat"]), float(ask.params["lon"]), world.now, [])


@compact.form("status:203")
def to_be_retired(world: World, ask: Ask) -> Reply:
    """Answer with the status of a version that will be retired."""
    reply = compact.handler(world, ask)
    return Reply(reply.body, 203, reply.content_type, reply.headers, reply.last_modified)


def _feature(lat: float, lon: float, made_at: float, steps: list[dict[str, Any]]) -> Reply:
    body = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [lon, lat, 38]},
        "properties": {"meta": {"updated_at": _time(made_at), "units": UNITS}, "timeseries": steps},
    }
    expires = format_datetime(datetime.fromtimestamp(made_at + 3600 + 1800, UTC), usegmt=True)
    return Reply.json(body, headers={"Expires": expires}, last_modified=made_at)


def _step(seen: Sky, at: float, hours: int) -> dict[str, Any]:
    symbol = seen.symbol + (f"_{'day' if seen.by_day else 'night'}" if seen.symbol in BY_LIGHT else "")
    details = {
        "air_pressure_at_sea_level": 1013.2,
        "air_temperature": seen.temperature_c,
        "cloud_area_fraction": 50.0,
        "relative_humidity": float(seen.humidity),
        "wind_from_direction": float(seen.wind_deg),
        "wind_speed": seen.wind_ms,
    }
    ahead = {
        f"next_{hours}_hours": {"summary": {"symbol_code": symbol}, "details": {"precipitation_amount": seen.rain_mm}}
    }
    return {"time": _time(at), "data": {"instant": {"details": details}} | ahead}


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
