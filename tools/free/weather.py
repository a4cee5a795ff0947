"""GET /api/weather."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tools.parsing.places import Latitude, Longitude, Place, two_decimals
from tools.shared.geocoding import ChosenPlace, PlaceName, choose_place
from tools.shared.weather import (
    KPH_PER_MPH,
    MM_PER_INCH,
    Weather,
    celsius,
    condition,
    from_met_norway,
    from_open_meteo,
    local_time,
)
from tools.sources.geonames import CITIES
from tools.sources.met_norway import LOCATION_FORECAST
from tools.sources.open_meteo import FORECAST, Conditions, Hour
from tools.sources.open_meteo_geocoding import GEOCODING
from toolserver import CardValue, InvalidArguments, Payload, Picture, Sparse, Timestamp, ToolContext, lacking, tool, via

UNITS = {"temperature": "°F", "wind_speed": "mph", "humidity": "%", "precipitation": "inch"}
METRIC_UNITS = {"temperature_c": "°C", "wind_speed_kph": "km/h", "precipitation_mm": "mm"}

CODE = "Code of the weather in Open-Meteo's list of WMO codes; 68, 69, 83, 84: sleet, by MET Norway; null: none"
LocalTime = Annotated[
    str | None,
    Field(
        description="`time` on the clocks of the place, with the offset from UTC; null: its zone is not known",
        examples=["2027-01-15T00:00:00-08:00"],
        json_schema_extra={"format": "date-time"},
    ),
]


class CurrentWeather(Sparse):
    time: Timestamp = Field(description="Time of the conditions, UTC")
    temperature_f: float = Field(description="Air temperature, °F")
    apparent_temperature_f: float | None = Field(description="What it feels like, °F; null from MET Norway")
    weather_code: int | None = Field(description=CODE)
    condition: str = Field(examples=["partly cloudy"], description="Our words for weather_code; unknown without one")
    wind_speed_mph: float = Field(description="Wind at 10 m, miles an hour")
    wind_direction_deg: int | None = Field(description="Where the wind comes from, degrees from north; null: not given")
    humidity_percent: int = Field(description="Relative humidity, percent")
    precipitation_in: float | None = Field(
        description="Inches in the past 15 minutes; of MET Norway: in the hour to come; null: not given"
    )
    local_time: LocalTime
    temperature_c: float | None = Field(default=None, description="Air temperature, °C; absent without units=metric")
    apparent_temperature_c: float | None = Field(
        default=None, description="What it feels like, °C; absent without units=metric; null from MET Norway"
    )
    wind_speed_kph: float | None = Field(default=None, description="Wind at 10 m, km/h; absent without units=metric")
    precipitation_mm: float | None = Field(
        default=None, description="precipitation_in as millimetres; absent without units=metric; null: not given"
    )


class HourlyWeather(Sparse):
    time: Timestamp = Field(description="Start of the hour, UTC")
    temperature_f: float = Field(description="Air temperature, °F")
    weather_code: int | None = Field(description=CODE)
    condition: str = Field(description="Our words for weather_code; unknown without one")
    wind_speed_mph: float = Field(description="Wind at 10 m, miles an hour")
    humidity_percent: int | None = Field(description="Relative humidity, percent; null: not given")
    precipitation_probability_percent: int | None = Field(
        description="Probability of precipitation, percent; null from MET Norway"
    )
    local_time: LocalTime
    temperature_c: float | None = Field(default=None, description="Air temperature, °C; absent without units=metric")
    wind_speed_kph: float | None = Field(default=None, description="Wind at 10 m, km/h; absent without units=metric")


class LocalWeather(Payload):
    lat: float = Field(description="Degrees north, two decimals")
    lon: float = Field(description="Degrees east, two decimals")
    place: str | None = Field(description="Name of the place, whole; null: only coordinates were given")
    timezone: str = Field(description="Time zone of the place, by name; UTC when not known")
    default_location: bool = Field(description="True: no place was given, and this is Los Angeles")
    current: CurrentWeather = Field(description="The weather now")
    hourly: list[HourlyWeather] = Field(max_length=24, description="Forecast by the hour, from the current one on")
    units: dict[str, str] = Field(description="Unit by kind of value")


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
    shipped=(CITIES,),
    distinct=(("lat", "lon", "place"), 60, 3600),
    headline=CardValue("current.temperature_f", "°F", "{place|lat, lon}: {current.condition}"),
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
    units: Annotated[Literal["us", "metric"], Field(description="metric adds Celsius")] = "us",
) -> LocalWeather:
    """Current weather anywhere on earth, and the next 24 hours: temperature in Fahrenheit or Celsius, wind, humidity,
    condition. Give `place`, or `lat` and `lon`. For warnings use climate_weather_alerts.

    Shape: coordinates are rounded to two decimals. Without a place the answer is for Los Angeles, with
    `default_location` and a warning of that name. If several places share a name, the one that is far larger and
    better known than the others is taken; `place` in the answer names it. `time` is in UTC, `local_time` the same
    instant there.
    Source: Open-Meteo, refreshed every 10 minutes; MET Norway when Open-Meteo is down (then no apparent temperature,
    no probability of precipitation, and a time zone only for a place found by name). Names of places are looked up in
    a copy of GeoNames that is shipped; only those of less than 15,000 people at Open-Meteo.
    Errors: one coordinate without the other, one out of range, a name that no place has or several have (they are
    listed, each as it can be sent) is `invalid_arguments`.
    """
    if (lat is None) != (lon is None):
        missing = {"loc": "lat" if lat is None else "lon", "msg": "Field required", "type": "missing"}
        raise InvalidArguments("lat and lon belong together: give both or neither.", errors=[missing])
    point = None if lat is None or lon is None else Place(lat, lon)
    chosen = await choose_place(ctx, point, place)
    forecast = await ctx.first(
        "data",
        via(FORECAST, chosen.place, partial(from_open_meteo, now=ctx.now)),
        lacking(
            via(LOCATION_FORECAST, chosen.place, partial(from_met_norway, now=ctx.now)),
            "apparent_temperature_f",
            "precipitation_probability_percent",
            "local_time",
        ),
    )
    return _shown(forecast, chosen, is_metric=units == "metric")


def _shown(forecast: Weather, chosen: ChosenPlace, *, is_metric: bool) -> LocalWeather:
    zone = forecast.timezone or chosen.timezone
    return LocalWeather(
        lat=chosen.place.lat,
        lon=chosen.place.lon,
        place=chosen.name,
        timezone=zone or "UTC",
        default_location=chosen.by_default,
        current=_current(forecast.current, zone, is_metric=is_metric),
        hourly=[_hour(hour, zone, is_metric=is_metric) for hour in forecast.hourly],
        units=UNITS | METRIC_UNITS if is_metric else UNITS,
    )


def _current(now: Conditions, zone: str | None, *, is_metric: bool) -> CurrentWeather:
    rain = now.precipitation_in
    metric: dict[str, Any] = {
        "apparent_temperature_c": _celsius(now.apparent_temperature_f),
        "precipitation_mm": None if rain is None else round(rain * MM_PER_INCH, 1),
    }
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
        local_time=local_time(now.time, zone),
        **(_metric(now) | metric if is_metric else {}),
    )


def _hour(hour: Hour, zone: str | None, *, is_metric: bool) -> HourlyWeather:
    return HourlyWeather(
        time=hour.time,
        temperature_f=round(hour.temperature_f, 1),
        weather_code=hour.weather_code,
        condition=condition(hour.weather_code),
        wind_speed_mph=round(hour.wind_speed_mph, 1),
        humidity_percent=_whole(hour.humidity_percent),
        precipitation_probability_percent=_whole(hour.precipitation_probability_percent),
        local_time=local_time(hour.time, zone),
        **(_metric(hour) if is_metric else {}),
    )


def _metric(seen: Conditions | Hour) -> dict[str, Any]:
    return {
        "temperature_c": _celsius(seen.temperature_f),
        "wind_speed_kph": round(seen.wind_speed_mph * KPH_PER_MPH, 1),
    }


def _celsius(fahrenheit: float | None) -> float | None:
    return None if fahrenheit is None else round(celsius(fahrenheit), 1) + 0.0  # which turns -0.0 into 0.0


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
