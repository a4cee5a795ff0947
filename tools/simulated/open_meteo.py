"""Simulate Open-Meteo on the wire: local times without an offset, and only the requested variables."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.sky import Air, Sky, Zone, air, sky, zone
from toolserver.world.model import Ask, Handler, Reply, World, expects, serves

OWN = "open-meteo.example"  # a possible value of OPENMETEO_URL: https://open-meteo.example
FREE, CUSTOMER = "api.open-meteo.com", "customer-api.open-meteo.com"
FREE_AIR, CUSTOMER_AIR = "air-quality-api.open-meteo.com", "customer-air-quality-api.open-meteo.com"
DEFAULT = (34.05, -118.24)
WEATHER: dict[str, tuple[str, Callable[[Sky], float]]] = {  # variable -> (unit, its value)
    "temperature_2m": ("°F", lambda s: fahrenheit(s.temperature_c)),
    "apparent_temperature": ("°F", lambda s: fahrenheit(s.apparent_c)),
    "relative_humidity_2m": ("%", lambda s: s.humidity),
    "precipitation_probability": ("%", lambda s: s.rain_percent),
    "precipitation": ("inch", lambda s: round(s.rain_mm / 25.4, 3)),
    "weather_code": ("wmo code", lambda s: s.code),
    "wind_speed_10m": ("mp/h", lambda s: round(s.wind_ms * 2.23694, 1)),
    "wind_direction_10m": ("°", lambda s: s.wind_deg),
}
INDICES = {"us_aqi": "USAQI", "european_aqi": "EAQI"}
TIME_UNITS = {"time": "iso8601", "interval": "seconds"}


class ForecastRefused(ValueError):
    """A refusal; its message is the reason of an error body."""


def forecast(world: World, ask: Ask) -> Reply:
    params = ask.params
    lat, lon = _place(params)
    here = zone(lat, lon)
    now = world.now - world.now % 900
    midnight = (world.now + here.offset_s) // 86400 * 86400 - here.offset_s
    hours = [midnight + 3600 * i for i in range(24 * int(params.get("forecast_days", "7")))]
    wanted, hourly = params["current"].split(","), params["hourly"].split(",")
    skies = [sky(world, lat, lon, at) for at in hours]
    seen = sky(world, lat, lon, now)
    body = _envelope(lat, lon, here) | {
        "current_units": TIME_UNITS | {name: WEATHER[name][0] for name in wanted},
        "current": {"time": _local(now, here), "interval": 900} | {name: WEATHER[name][1](seen) for name in wanted},
        "hourly_units": {"time": "iso8601"} | {name: WEATHER[name][0] for name in hourly},
        "hourly": {"time": [_local(at, here) for at in hours]}
        | {name: [WEATHER[name][1](s) for s in skies] for name in hourly},
    }
    return Reply.json(body, content_type="application/json; charset=utf-8")


def air_quality(world: World, ask: Ask) -> Reply:
    params = ask.params
    lat, lon = _place(params)
    here = zone(lat, lon)
    hour = world.now - world.now % 3600
    wanted = params["current"].split(",")
    values = _values(air(world, lat, lon, hour), wanted)
    body = _envelope(lat, lon, here) | {
        "current_units": TIME_UNITS | {name: INDICES.get(name, "μg/m³") for name in wanted},
        "current": {"time": _local(hour, here), "interval": 3600} | values,
    }
    return Reply.json(body, content_type="application/json; charset=utf-8")


def _values(reading: Air, wanted: list[str]) -> dict[str, Any]:
    return {name: reading._asdict()[name] for name in wanted}


def _place(params: Mapping[str, str]) -> tuple[float, float]:
    lat, lon = float(params["latitude"]), float(params["longitude"])
    if not -90 <= lat <= 90:
        raise ForecastRefused(f"Latitude must be in range of -90 to 90°. Given: {lat}.")
    if not -180 <= lon <= 180:
        raise ForecastRefused(f"Longitude must be in range of -180 to 180°. Given: {lon}.")
    return lat, lon


def _envelope(lat: float, lon: float, here: Zone) -> dict[str, Any]:
    """Return the envelope, with the coordinates of the grid cell."""
    return {
        "latitude": round(round(lat * 16) / 16 + 0.000005, 6),
        "longitude": round(round(lon * 16) / 16 - 0.000005, 6),
        "generationtime_ms": 0.16689300537109375,
        "utc_offset_seconds": here.offset_s,
        "timezone": here.name,
        "timezone_abbreviation": f"GMT{here.offset_s // 3600:+d}" if here.offset_s else "GMT",
        "elevation": 38.0,
    }


def _local(at: float, here: Zone) -> str:
    return datetime.fromtimestamp(at + here.offset_s, UTC).strftime("%Y-%m-%dT%H:%M")


def fahrenheit(celsius: float) -> float:
    return round(celsius * 9 / 5 + 32, 1)


def _guarded(handler: Handler, *, keyed: bool) -> Handler:
    """Wrap a handler so that it refuses bad coordinates and keys, as all endpoints of Open-Meteo do."""

    def answer(world: World, ask: Ask) -> Reply:
        if keyed and not ask.key_ok(ask.params.get("apikey")):
            return _error("The supplied API key is invalid.", 400)
        try:
            return handler(world, ask)
        except ForecastRefused as refused:
            return _error(str(refused), 400)

    return answer


def _error(reason: str, status: int) -> Reply:
    return Reply.json({"error": True, "reason": reason}, status)


FORMS = {
    "limited": _error("Minutely API request limit exceeded. Please try again in one minute.", 429),
    "error200": _error("Daily API request limit exceeded. Please try again tomorrow.", 200),
}


def _nothing_current(world: World, ask: Ask) -> Reply:
    lat, lon = _place(ask.params)
    nothing: dict[str, Any] = {"current": {"time": None}, "hourly": {"time": []}}
    return Reply.json(_envelope(lat, lon, zone(lat, lon)) | nothing)


for _host in (FREE, CUSTOMER, OWN):
    _forecast = _guarded(forecast, keyed=_host == CUSTOMER)
    serves("OpenMeteo.forecast", _host, "/v1/forecast", forms=FORMS)(_forecast).form("empty")(_nothing_current)
for _host in (FREE_AIR, CUSTOMER_AIR, OWN):
    _air = _guarded(air_quality, keyed=_host == CUSTOMER_AIR)
    serves("OpenMeteo.air_quality", _host, "/v1/air-quality", forms=FORMS)(_air).form("empty")(_nothing_current)


@expects("weather")
def expected_weather(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/weather` must have at this instant when Open-Meteo answers."""
    lat, lon = (float(params.get("lat", DEFAULT[0])), float(params.get("lon", DEFAULT[1])))
    here = zone(lat, lon)
    first = (world.now + here.offset_s) // 3600 * 3600 - here.offset_s
    now = world.now - world.now % 900
    return {
        "lat": lat,
        "lon": lon,
        "timezone": here.name,
        "default_location": "lat" not in params,
        "current": _said(sky(world, lat, lon, now), now),
        "hourly": [_said(sky(world, lat, lon, at), at) for at in (first + 3600 * i for i in range(24))],
    }


def _said(seen: Sky, at: float) -> dict[str, Any]:
    return {
        "time": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "temperature_f": fahrenheit(seen.temperature_c),
        "weather_code": seen.code,
        "wind_speed_mph": round(seen.wind_ms * 2.23694, 1),
        "humidity_percent": seen.humidity,
    }


@expects("air-quality")
def expected_air(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/air-quality` must have when Open-Meteo answers. Coordinates must be valid."""
    lat, lon = (float(params.get("lat", DEFAULT[0])), float(params.get("lon", DEFAULT[1])))
    reading = air(world, lat, lon, world.now - world.now % 3600)
    return {"lat": lat, "lon": lon, "default_location": "lat" not in params} | reading._asdict()
