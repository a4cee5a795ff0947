"""GET /api/weather."""

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.parsing.places import Latitude, Longitude, Place, two_decimals
from tools.shared.geocoding import ChosenPlace, PlaceName, choose_place
from tools.shared.weather import Weather, condition, from_met_norway, from_open_meteo
from tools.sources.met_norway import LOCATION_FORECAST
from tools.sources.open_meteo import FORECAST, Conditions, Hour
from tools.sources.open_meteo_geocoding import GEOCODING
from toolserver import CardValue, InvalidArguments, Payload, Picture, Timestamp, ToolContext, tool, via

UNITS = {"temperature": "°F", "wind_speed": "mph", "humidity": "%", "precipitation": "inch"}


class CurrentWeather(Payload):
    time: Timestamp
    temperature_f: float
    apparent_temperature_f: float | None
    weather_code: int | None = Field(description="WMO 4677")
    condition: str = Field(examples=["partly cloudy"])
    wind_speed_mph: float
    wind_direction_deg: int | None
    humidity_percent: int
    precipitation_in: float | None = Field(description="In 15 minutes; of MET Norway: in the hour to come")


class HourlyWeather(Payload):
    time: Timestamp
    temperature_f: float
    weather_code: int | None
    condition: str
    wind_speed_mph: float
    humidity_percent: int | None
    precipitation_probability_percent: int | None


class LocalWeather(Payload):
    lat: float
    lon: float
    place: str | None = Field(description="The place that a name was found to be")
    timezone: str = Field(description="Of the place, by name; UTC when not known. All times are UTC")
    default_location: bool
    current: CurrentWeather
    hourly: list[HourlyWeather] = Field(max_length=24, description="From the current hour")
    units: dict[str, str]


def rounded(degrees: float | None) -> float | None:
    """Round to two decimals, so that neighbours share an answer."""
    return None if degrees is None else two_decimals(degrees)


@tool(
    path="/api/weather",
    title="Weather",
    search_hint="what is the weather forecast temperature rain wind today tomorrow in city",
    always_loaded=True,
    toolset="core",
    ttl_s=600,
    sources=(FORECAST, LOCATION_FORECAST, GEOCODING),
    distinct=(("lat", "lon", "place"), 60, 3600),
    headline=CardValue("current.temperature_f", "°F", "{current.condition} at {lat}, {lon}"),
    pictures=(
        Picture(
            "series", "Temperature, hour by hour", rows="hourly", values=("temperature_f",), time="time", unit="°F"
        ),
    ),
)
async def weather(
    ctx: ToolContext,
    lat: Annotated[Latitude | None, AfterValidator(rounded), Field(description="Latitude", examples=[40.71])] = None,
    lon: Annotated[Longitude | None, AfterValidator(rounded), Field(description="Longitude", examples=[-74.01])] = None,
    place: PlaceName | None = None,
) -> LocalWeather:
    """Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit, wind in mph, humidity,
    condition. Give `place`, or `lat` and `lon` together. For warnings use climate_weather_alerts.

    Shape: coordinates are rounded to two decimals. Without any the place is Los Angeles, with `default_location` and
    a warning of that name.
    Source: Open-Meteo, refreshed every 10 minutes; MET Norway when Open-Meteo is down (then no apparent temperature,
    no probability of precipitation and no time zone).
    Errors: one coordinate without the other, one out of range, a name that no place has or several have (they are
    listed) is `invalid_arguments`.
    """
    if (lat is None) != (lon is None):
        missing = {"loc": "lat" if lat is None else "lon", "msg": "Field required", "type": "missing"}
        raise InvalidArguments("lat and lon belong together: give both or neither.", errors=[missing])
    point = None if lat is None or lon is None else Place(lat, lon)
    chosen = await choose_place(ctx, point, place)
    forecast = await ctx.first(
        "data",
        via(FORECAST, chosen.place, partial(from_open_meteo, now=ctx.now)),
        via(LOCATION_FORECAST, chosen.place, partial(from_met_norway, now=ctx.now)),
    )
    return _shown(forecast, chosen)


def _shown(forecast: Weather, chosen: ChosenPlace) -> LocalWeather:
    return LocalWeather(
        lat=chosen.place.lat,
        lon=chosen.place.lon,
        place=chosen.name,
        timezone=forecast.timezone or "UTC",
        default_location=chosen.by_default,
        current=_current(forecast.current),
        hourly=[_hour(hour) for hour in forecast.hourly],
        units=UNITS,
    )


def _current(now: Conditions) -> CurrentWeather:
    return CurrentWeather(
        time=now.time,
        temperature_f=round(now.temperature_f, 1),
        apparent_temperature_f=_rounded(now.apparent_temperature_f, 1),
        weather_code=now.weather_code,
        condition=condition(now.weather_code),
        wind_speed_mph=round(now.wind_speed_mph, 1),
        wind_direction_deg=_whole(now.wind_direction_deg),
        humidity_percent=round(now.humidity_percent),
        precipitation_in=_rounded(now.precipitation_in, 3),
    )


def _hour(hour: Hour) -> HourlyWeather:
    return HourlyWeather(
        time=hour.time,
        temperature_f=round(hour.temperature_f, 1),
        weather_code=hour.weather_code,
        condition=condition(hour.weather_code),
        wind_speed_mph=round(hour.wind_speed_mph, 1),
        humidity_percent=_whole(hour.humidity_percent),
        precipitation_probability_percent=_whole(hour.precipitation_probability_percent),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
