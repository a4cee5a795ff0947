"""Convert two forecasts to one form: units, local times, WMO codes in words, and the hours that are the next 24."""

from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools.sources.met_norway import Step
from tools.sources.open_meteo import Conditions, Forecast, Hour
from toolserver import Definition, Meaning, SourceChanged, SourceFrozen

HOURS = 24
MM_PER_INCH, MPH_PER_MS, KPH_PER_MPH = 25.4, 2.23694, 1.609344
FARTHEST = timedelta(hours=2)  # between now and the step that serves as the current weather
OLDEST = timedelta(hours=7)  # a forecast may be kept for a little over six hours

WORDS = {  # Open-Meteo's list of WMO codes; sleet is not in it, and comes from MET Norway alone
    0: "clear",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "rime fog",
    **dict.fromkeys((51, 53, 55), "drizzle"),
    **dict.fromkeys((56, 57), "freezing drizzle"),
    **dict.fromkeys((61, 63, 65), "rain"),
    **dict.fromkeys((66, 67), "freezing rain"),
    **dict.fromkeys((68, 69), "sleet"),
    **dict.fromkeys((71, 73, 75), "snow"),
    77: "snow grains",
    **dict.fromkeys((80, 81), "rain showers"),
    82: "violent rain showers",
    **dict.fromkeys((83, 84), "sleet showers"),
    **dict.fromkeys((85, 86), "snow showers"),
    95: "thunderstorm",
    **dict.fromkeys((96, 99), "thunderstorm with hail"),
}
UNKNOWN = "unknown"
SKIES = {"clearsky": 0, "fair": 1, "partlycloudy": 2, "cloudy": 3, "fog": 45}
FALLING = (  # WMO 4677 for light, plain and heavy, in this order: a symbol may hold several parts
    ("thunder", 95, 95, 95),
    ("rainshowers", 80, 81, 81),  # 82 is for violent ones, which MET Norway does not tell from heavy ones
    ("sleetshowers", 83, 84, 84),
    ("snowshowers", 85, 86, 86),
    ("sleet", 68, 69, 69),
    ("rain", 61, 63, 65),
    ("snow", 71, 73, 75),
)


class Weather(NamedTuple):
    """Now, and the hours from the current one on. `timezone` is None where the provider does not publish it."""

    timezone: str | None
    current: Conditions
    hourly: tuple[Hour, ...]


def condition(code: int | None) -> str:
    """Return the words for a WMO code."""
    return UNKNOWN if code is None else WORDS.get(code, UNKNOWN)


def code_of_symbol(symbol: str | None) -> int | None:
    """Return the WMO code nearest to a symbol of MET Norway."""
    if symbol is None:
        return None
    name = symbol.removesuffix("_day").removesuffix("_night").removesuffix("_polartwilight")
    if name in SKIES:
        return SKIES[name]
    for part, light, plain, heavy in FALLING:
        if part in name:
            return light if name.startswith("light") else heavy if name.startswith("heavy") else plain
    return None


CONDITION = (
    Meaning(
        "weather.condition",
        "Our words for Open-Meteo's list of WMO codes, freezing rain and hail kept apart; sleet (68, 69, 83, 84 of "
        "WMO 4677) is of MET Norway alone; a code that is in neither is unknown",
        decide=condition,
        rows=(
            (0, "clear"),
            (3, "overcast"),
            (4, "unknown"),
            (48, "rime fog"),
            (50, "unknown"),
            (51, "drizzle"),
            (53, "drizzle"),
            (55, "drizzle"),
            (56, "freezing drizzle"),
            (57, "freezing drizzle"),
            (61, "rain"),
            (63, "rain"),
            (65, "rain"),
            (66, "freezing rain"),
            (67, "freezing rain"),
            (68, "sleet"),
            (69, "sleet"),
            (71, "snow"),
            (75, "snow"),
            (77, "snow grains"),
            (81, "rain showers"),
            (82, "violent rain showers"),
            (83, "sleet showers"),
            (84, "sleet showers"),
            (85, "snow showers"),
            (86, "snow showers"),
            (95, "thunderstorm"),
            (96, "thunderstorm with hail"),
            (97, "unknown"),
            (99, "thunderstorm with hail"),
            (None, "unknown"),
        ),
        definition=Definition(
            publisher="Open-Meteo",
            link="https://open-meteo.com/en/docs",
            words="Freezing Rain: Light and heavy intensity … Thunderstorm with slight and heavy hail",
            read_on=date(2026, 11, 25),
        ),
    ),
    Meaning(
        "weather.current.precipitation_in",
        "Of Open-Meteo in the 15 minutes before, of MET Norway in the hour to come",
    ),
    Meaning(
        "weather.weather_code",
        "MET Norway publishes symbols; ours are the nearest codes of WMO 4677, light, plain and heavy",
        decide=code_of_symbol,
        rows=(
            ("clearsky_night", 0),
            ("fair_polartwilight", 1),
            ("partlycloudy_day", 2),
            ("cloudy", 3),
            ("fog", 45),
            ("lightrain", 61),
            ("rain", 63),
            ("heavyrain", 65),
            ("lightrainshowers_day", 80),
            ("heavyrainshowers_day", 81),
            ("rainshowersandthunder_night", 95),
            ("lightssleetshowersandthunder_day", 95),
            ("lightsleet", 68),
            ("heavysleet", 69),
            ("sleetshowers_day", 84),
            ("lightsnowshowers_night", 85),
            ("snowshowers_night", 86),
            ("heavysnow", 75),
            ("frogs", None),
            (None, None),
        ),
    ),
)


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
