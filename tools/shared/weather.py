"""Convert two forecasts to one form: units, local times, WMO codes in words, and the hours that are the next 24."""

from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools.sources.met_norway import Step
from tools.sources.open_meteo import Conditions, Forecast, Hour
from toolserver import SourceChanged, SourceFrozen

HOURS = 24
MM_PER_INCH, MPH_PER_MS, KPH_PER_MPH = 25.4, 2.23694, 1.609344
FARTHEST = timedelta(hours=2)  # between now and the step that serves as the current weather
OLDEST = timedelta(hours=7)  # a forecast may be kept for a little over six hours

WORDS = (  # the WMO codes from … to, in words
    (0, 0, "clear"),
    (1, 1, "mainly clear"),
    (2, 2, "partly cloudy"),
    (3, 3, "overcast"),
    (45, 45, "fog"),
    (48, 48, "fog"),
    (51, 57, "drizzle"),
    (61, 67, "rain"),
    (71, 77, "snow"),
    (80, 82, "rain showers"),
    (85, 86, "snow showers"),
    (95, 99, "thunderstorm"),
)
UNKNOWN = "unknown"
SKIES = {"clearsky": 0, "fair": 1, "partlycloudy": 2, "cloudy": 3, "fog": 45}
FALLING = (  # in this order: a symbol may hold several, such as lightrainshowersandthunder_day
    ("thunder", 95),
    ("rainshowers", 80),
    ("snowshowers", 85),
    ("sleet", 66),
    ("rain", 63),
    ("snow", 73),
)


class Weather(NamedTuple):
    """Now, and the hours from the current one on. `timezone` is None where the provider does not publish it."""

    timezone: str | None
    current: Conditions
    hourly: tuple[Hour, ...]


def condition(code: int | None) -> str:
    """Return the words for a WMO code."""
    return next((words for low, high, words in WORDS if code is not None and low <= code <= high), UNKNOWN)


def code_of_symbol(symbol: str | None) -> int | None:
    """Return the WMO code nearest to a symbol of MET Norway."""
    if symbol is None:
        return None
    name = symbol.removesuffix("_day").removesuffix("_night").removesuffix("_polartwilight")
    return SKIES.get(name, next((code for part, code in FALLING if part in name), None))


def fahrenheit(celsius: float) -> float:
    return celsius * 9 / 5 + 32


def celsius(fahrenheit: float) -> float:
    return (fahrenheit - 32) * 5 / 9


def local_time(time: datetime, zone: str | None) -> str | None:
    """Return a time on the clocks of a zone, in ISO 8601 with its offset; None for no zone or one unknown here."""
    try:
        return None if zone is None else time.astimezone(ZoneInfo(zone)).isoformat(timespec="seconds")
    except (ZoneInfoNotFoundError, ValueError):  # ValueError: a name that is no relative path
        return None


def from_open_meteo(forecast: Forecast, now: datetime) -> Weather:
    """Convert a forecast of Open-Meteo. Raises SourceFrozen when its current conditions are hours old."""
    if now - forecast.current.time > OLDEST:
        raise SourceFrozen(f"the current conditions are dated {forecast.current.time:%Y-%m-%d %H:%M}")
    return Weather(forecast.timezone, forecast.current, next_hours(forecast.hourly, now))


def from_met_norway(steps: tuple[Step, ...], now: datetime) -> Weather:
    """Use the step of the current hour as the current weather.

    Raises SourceFrozen when no step is near, or when the first one is long past.
    """
    begun = [step for step in steps if step.time <= now]
    step = begun[-1] if begun else steps[0]
    if abs(now - step.time) > FARTHEST or now - steps[0].time > OLDEST:
        raise SourceFrozen(f"the nearest step is dated {step.time:%Y-%m-%d %H:%M}")
    humidity, rain = step.humidity_percent, step.precipitation_mm
    if humidity is None:
        raise SourceChanged("no humidity")
    current = Conditions(
        time=step.time,
        temperature_f=fahrenheit(step.temperature_c),
        wind_speed_mph=step.wind_speed_ms * MPH_PER_MS,
        humidity_percent=humidity,
        wind_direction_deg=step.wind_direction_deg,
        weather_code=code_of_symbol(step.symbol),
        precipitation_in=None if rain is None else rain / MM_PER_INCH,
    )
    return Weather(None, current, next_hours(tuple(_hour(step) for step in steps), now))


def _hour(step: Step) -> Hour:
    return Hour(
        time=step.time,
        temperature_f=fahrenheit(step.temperature_c),
        wind_speed_mph=step.wind_speed_ms * MPH_PER_MS,
        humidity_percent=step.humidity_percent,
        weather_code=code_of_symbol(step.symbol),
    )


def next_hours(hourly: tuple[Hour, ...], now: datetime) -> tuple[Hour, ...]:
    """Return the current hour and the 23 after it, as far as known; local hours need not begin with UTC's."""
    return tuple(hour for hour in hourly if timedelta(hours=-1) < hour.time - now <= timedelta(hours=HOURS - 1))
