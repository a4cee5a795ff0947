"""Read weather and air quality for a point from Open-Meteo (JSON, no key).

The free hosts are for non-commercial use. A paid plan (OPENMETEO_API_KEY) allows commercial
use, and so does your own server (OPENMETEO_URL): the software is free (AGPL), and the data
that it loads are CC BY 4.0.

https://open-meteo.com/en/docs
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from tools.parsing.fields import clean, from_iso, number, number_or_none, optional, within
from tools.parsing.places import DEFAULT, Place
from tools.sources.hosts import HOUR, MINUTE, OPENMETEO
from toolserver import Get, Keys, KeyTerms, Licence, Source, SourceChanged, SourceEmpty, SourceLimited, read_rows

KEY, SERVER = "OPENMETEO_API_KEY", "OPENMETEO_URL"
FORECAST_LICENCE = Licence(
    "non_commercial", "Weather data by Open-Meteo.com (CC BY 4.0)", "https://open-meteo.com/en/terms"
)
AIR_LICENCE = Licence(
    "non_commercial", "Air quality by CAMS via Open-Meteo.com (CC BY 4.0)", "https://open-meteo.com/en/terms"
)
DATA_LICENCE = "https://open-meteo.com/en/licence"
CURRENT = (
    "temperature_2m,apparent_temperature,relative_humidity_2m,"
    "weather_code,wind_speed_10m,wind_direction_10m,precipitation"
)
HOURLY = "temperature_2m,relative_humidity_2m,precipitation_probability,weather_code,wind_speed_10m"
AIR = "us_aqi,european_aqi,pm2_5,pm10,ozone,nitrogen_dioxide,sulphur_dioxide,carbon_monoxide"
LEAST_HOURS = 24


class Conditions(NamedTuple):
    """The weather at an instant. `precipitation_in` fell in the 15 minutes before it."""

    time: datetime
    temperature_f: float
    wind_speed_mph: float
    humidity_percent: float
    apparent_temperature_f: float | None = None
    wind_direction_deg: float | None = None
    weather_code: int | None = None
    precipitation_in: float | None = None


class Hour(NamedTuple):
    """The forecast weather at a full hour of local time."""

    time: datetime
    temperature_f: float
    wind_speed_mph: float
    humidity_percent: float | None = None
    precipitation_probability_percent: float | None = None
    weather_code: int | None = None


class Forecast(NamedTuple):
    """Three days from the last local midnight, by the hour."""

    timezone: str
    current: Conditions
    hourly: tuple[Hour, ...]


class AirQuality(NamedTuple):
    """Concentrations in µg/m³. Any value may be missing, but not both the US index and PM2.5."""

    time: datetime
    us_aqi: float | None
    european_aqi: float | None
    pm2_5: float | None
    pm10: float | None
    ozone: float | None
    nitrogen_dioxide: float | None
    sulphur_dioxide: float | None
    carbon_monoxide: float | None


def request_forecast(query: Place, keys: Keys) -> Get:
    params = {
        "current": CURRENT,
        "hourly": HOURLY,
        "temperature_unit": "fahrenheit",
        "wind_speed_unit": "mph",
        "precipitation_unit": "inch",
        "timezone": "auto",
        "forecast_days": "3",
    }
    return _request("api.open-meteo.com/v1/forecast", query, params, keys)


def request_air(query: Place, keys: Keys) -> Get:
    return _request("air-quality-api.open-meteo.com/v1/air-quality", query, {"current": AIR, "timezone": "auto"}, keys)


def _request(address: str, place: Place, params: dict[str, str], keys: Keys) -> Get:
    params = {"latitude": f"{place.lat:.2f}", "longitude": f"{place.lon:.2f}"} | params
    if SERVER in keys:
        return Get(f"{keys[SERVER].rstrip('/')}/{address.partition('/')[2]}", params=params, under=SERVER)
    if KEY in keys:
        return Get(f"https://customer-{address}", params=params | {"apikey": keys[KEY]}, under=KEY)
    return Get(f"https://{address}", params=params)


def parse_forecast(body: Any, query: Place) -> Forecast:
    """Return current conditions and the hours that have a temperature and a wind speed."""
    _refuse_error(body)
    offset = timedelta(seconds=within(number(body["utc_offset_seconds"]), -86400, 86400))
    hourly = _hours(body["hourly"], offset)
    if len(hourly) < LEAST_HOURS:
        raise SourceEmpty(f"{len(hourly)} hours")
    return Forecast(clean(str(body["timezone"]), 60), _conditions(body["current"], offset), hourly)


def _conditions(now: dict[str, Any], offset: timedelta) -> Conditions:
    return Conditions(
        time=from_iso(now["time"]) - offset,
        temperature_f=_fahrenheit(now["temperature_2m"]),
        wind_speed_mph=within(number(now["wind_speed_10m"]), 0, 400),
        humidity_percent=_humidity(now["relative_humidity_2m"]),
        apparent_temperature_f=optional(_fahrenheit, now.get("apparent_temperature")),
        wind_direction_deg=optional(_direction, now.get("wind_direction_10m")),
        weather_code=optional(_code, now.get("weather_code")),
        precipitation_in=optional(_amount, now.get("precipitation")),
    )


def _hours(hourly: dict[str, Any], offset: timedelta) -> tuple[Hour, ...]:
    """Return the hours from parallel arrays; those of optional members may be absent, but not shorter."""
    times = hourly["time"]
    names = ("relative_humidity_2m", "precipitation_probability", "weather_code")
    optionals = (hourly.get(name) or [None] * len(times) for name in names)
    rows = zip(times, hourly["temperature_2m"], hourly["wind_speed_10m"], *optionals, strict=True)
    return read_rows(rows, lambda row: _hour(*row, offset=offset))


def _hour(
    time: Any, temperature: Any, wind: Any, humidity: Any, probability: Any, code: Any, *, offset: timedelta
) -> Hour | None:
    if temperature is None or wind is None:
        return None
    return Hour(
        time=from_iso(time) - offset,
        temperature_f=_fahrenheit(temperature),
        wind_speed_mph=within(number(wind), 0, 400),
        humidity_percent=None if humidity is None else _humidity(humidity),
        precipitation_probability_percent=optional(_percent, probability),
        weather_code=optional(_code, code),
    )


def parse_air(body: Any, query: Place) -> AirQuality:
    """Return the current hour. Zeros everywhere are not a measurement."""
    _refuse_error(body)
    current = body["current"]
    offset = timedelta(seconds=within(number(body["utc_offset_seconds"]), -86400, 86400))
    values = {name: number_or_none(current.get(name)) for name in AIR.split(",")}
    amounts = {name: None if value is None else within(value, 0, 100_000) for name, value in values.items()}
    if amounts["us_aqi"] is None and amounts["pm2_5"] is None:
        raise SourceEmpty("neither us_aqi nor pm2_5")
    if not any(amounts.values()):
        raise SourceChanged("every value is 0")
    return AirQuality(from_iso(current["time"]) - offset, **amounts)


def _refuse_error(body: Any) -> None:
    """Raise a SourceError for `{"error": true, "reason": …}`, which stands for any error."""
    if body.get("error"):
        reason = clean(str(body.get("reason")), 90)
        raise SourceLimited(reason) if "limit" in reason else SourceChanged(reason)


def _fahrenheit(value: Any) -> float:
    return within(number(value), -130, 140)


def _humidity(value: Any) -> float:
    """Return a humidity in percent. It is never 0 on earth: that would be a document of zeros."""
    return within(number(value), 0.1, 100)


def _bounded(value: Any, *, low: float, high: float) -> float:
    return within(number(value), low, high)


_direction = partial(_bounded, low=0, high=360)
_percent = partial(_bounded, low=0, high=100)
_amount = partial(_bounded, low=0, high=100)


def _code(value: Any) -> int:
    return int(within(number(value), 0, 99))


def terms_of(licence: Licence) -> dict[str, KeyTerms]:
    """Return the terms of a paid plan and of an own server: those of the data."""
    data = KeyTerms(Licence("attribution", licence.attribution, DATA_LICENCE), alone=True)
    return {SERVER: data, KEY: data}


FORECAST = Source(
    "OpenMeteo.forecast",
    request_forecast,
    parse_forecast,
    licence=FORECAST_LICENCE,
    terms=terms_of(FORECAST_LICENCE),
    hosts=OPENMETEO,
    fresh_s=10 * MINUTE,
    keep_s=6 * HOUR,
    newest=lambda forecast: forecast.current.time,
    newest_max_s=2 * HOUR,
    user_input=True,
    probe=DEFAULT,
)

AIR_QUALITY = Source(
    "OpenMeteo.air_quality",
    request_air,
    parse_air,
    licence=AIR_LICENCE,
    terms=terms_of(AIR_LICENCE),
    hosts=OPENMETEO,
    fresh_s=30 * MINUTE,
    keep_s=12 * HOUR,
    newest=lambda air: air.time,
    newest_max_s=3 * HOUR,
    user_input=True,
    probe=DEFAULT,
)
