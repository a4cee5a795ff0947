"""Simulate the weather and the air by place and instant: every forecast describes the same sky.

Pinned values: `weather.temperature_c`, `weather.code` (Open-Meteo's, whose symbol at MET
Norway stays the sky's own) and `air.us_aqi`, which may have a fraction, everywhere on earth.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from toolserver.world.model import World

DAY = 86400
WARMEST = 201  # day of the year, in the north
AQI_STEPS = ((0, 0), (9, 50), (35.4, 100), (55.4, 150), (125.4, 200), (225.4, 300))  # µg/m³ of PM2.5, index


class Sky(NamedTuple):
    """The measurable weather at a place. `symbol` has no `_day` or `_night`."""

    temperature_c: float
    apparent_c: float
    humidity: int
    wind_ms: float
    wind_deg: int
    code: int
    symbol: str
    rain_mm: float
    rain_percent: int
    by_day: bool


class Air(NamedTuple):
    """Concentrations in µg/m³ and the indices made of them."""

    us_aqi: float
    european_aqi: int
    pm2_5: float
    pm10: float
    ozone: float
    nitrogen_dioxide: float
    sulphur_dioxide: float
    carbon_monoxide: float


class Zone(NamedTuple):
    """The time zone of a place and its distance from UTC."""

    name: str
    offset_s: int


def zone(lat: float, lon: float) -> Zone:
    """Return a nautical zone, with one exception that is half an hour off."""
    if 6 < lat < 36 and 68 < lon < 90:
        return Zone("Asia/Kolkata", 19800)
    hours = round(lon / 15)
    return Zone(f"Etc/GMT{-hours:+d}" if hours else "Etc/GMT", hours * 3600)


def sky(world: World, lat: float, lon: float, at: float) -> Sky:
    """Return the sky over a place at an instant (epoch seconds)."""
    cell = f"{math.floor(lat)},{math.floor(lon)}"
    solar = (at / 3600 + lon / 15) % 24
    pinned = world.pinned("weather.temperature_c", at)
    warmth = _temperature(world, lat, cell, solar, at) if pinned is None else pinned
    wet = (world.noise(f"sky.wet.{cell}", at / 21600) + 1) / 2
    code, symbol = _cover(wet, warmth)
    pinned_code = world.pinned("weather.code", at)
    code = code if pinned_code is None else int(pinned_code)
    wind = round(1.5 + 9 * abs(world.noise(f"sky.wind.{cell}", at / 10800)), 1)
    return Sky(
        temperature_c=round(warmth, 1),
        apparent_c=round(warmth - wind / 4, 1),
        humidity=round(30 + 60 * wet),
        wind_ms=wind,
        wind_deg=round(180 + 179 * world.noise(f"sky.direction.{cell}", at / 21600)),
        code=code,
        symbol=symbol,
        rain_mm=round(12 * (wet - 0.74), 1) if code > 48 else 0.0,
        rain_percent=round(100 * wet**2),
        by_day=6 <= solar < 18,
    )


def _temperature(world: World, lat: float, cell: str, solar: float, at: float) -> float:
    season = math.cos(2 * math.pi * (at / DAY % 365.2425 - WARMEST) / 365.2425) * math.copysign(1, lat)
    day = math.cos(2 * math.pi * (solar - 15) / 24) * math.cos(math.radians(lat))
    return 28 - 0.0085 * lat**2 + 0.28 * abs(lat) * season + 6 * day + 5 * world.noise(f"sky.mass.{cell}", at / 43200)


def _cover(wet: float, celsius: float) -> tuple[int, str]:
    """Return WMO code and symbol."""
    for below, cover in (
        (0.25, (0, "clearsky")),
        (0.4, (1, "fair")),
        (0.55, (2, "partlycloudy")),
        (0.7, (3, "cloudy")),
    ):
        if wet < below:
            return cover
    if wet < 0.74:
        return 45, "fog"
    if celsius < 1.5:
        if celsius >= 0:  # MET Norway says sleet, for which Open-Meteo has no code: it rains and snows at once
            return (71 if celsius < 0.8 else 61), "lightsleet"
        if celsius > -1:  # MET Norway has no symbol for freezing rain
            return 66 if wet < 0.9 else 67, "rain"
        return (73, "snow") if wet < 0.9 else (86, "snowshowers")
    if wet < 0.9:
        return (61, "lightrain") if wet < 0.82 else (81, "rainshowers")
    return (95, "rainandthunder") if wet < 0.95 else (96, "heavyrainandthunder")


def air(world: World, lat: float, lon: float, at: float) -> Air:
    """Return the air over a place at an instant; it is the same within a degree. The US index is 10 to 180."""
    cell = f"{math.floor(lat)},{math.floor(lon)}"
    dust = (world.noise(f"air.{cell}", at / 14400) + 1) / 2
    fine = round(2 + 90 * dust**3, 1)
    pinned = world.pinned("air.us_aqi", at)
    return Air(
        us_aqi=aqi(fine) if pinned is None else pinned,
        european_aqi=round(min(150, 8 + 2 * fine)),
        pm2_5=fine,
        pm10=round(1.6 * fine, 1),
        ozone=round(40 + 50 * dust, 1),
        nitrogen_dioxide=round(5 + 40 * dust, 1),
        sulphur_dioxide=round(1 + 6 * dust, 1),
        carbon_monoxide=round(120 + 300 * dust, 1),
    )


def aqi(fine: float) -> int:
    """Return the US index of a concentration of PM2.5."""
    for (low, index), (high, next_index) in pairwise(AQI_STEPS):
        if fine <= high:
            return round(index + (fine - low) / (high - low) * (next_index - index))
    return 301
