"""Read the MET Norway location forecast (JSON, no key; the User-Agent must name a contact).

https://api.met.no/weatherapi/locationforecast/2.0/documentation
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import from_iso, number, optional, within
from tools.parsing.places import DEFAULT, Place
from tools.sources.hosts import HOUR, METNO, MINUTE
from toolserver import Get, Keys, Licence, Source, read_rows

COMPACT = "https://api.met.no/weatherapi/locationforecast/2.0/compact"
LICENCE = Licence("attribution", "Data from MET Norway (CC BY 4.0)", "https://api.met.no/doc/License")
LEAST_STEPS = 24


class Step(NamedTuple):
    """The forecast weather at an instant; `symbol` and `precipitation_mm` describe the hour after it."""

    time: datetime
    temperature_c: float
    wind_speed_ms: float
    humidity_percent: float | None = None
    wind_direction_deg: float | None = None
    symbol: str | None = None
    precipitation_mm: float | None = None


def request(query: Place, keys: Keys) -> Get:
    return Get(COMPACT, params={"lat": f"{query.lat:.4f}", "lon": f"{query.lon:.4f}"})


def parse(body: Any, query: Place) -> tuple[Step, ...]:
    """Return every step: hourly for two days and a half, then every six hours."""
    return read_rows(body["properties"]["timeseries"], _step)


def _step(item: dict[str, Any]) -> Step:
    details = item["data"]["instant"]["details"]
    hour = item["data"].get("next_1_hours") or {}
    symbol = (hour.get("summary") or {}).get("symbol_code")
    humidity = details.get("relative_humidity")
    return Step(
        time=from_iso(item["time"]),
        temperature_c=within(number(details["air_temperature"]), -90, 60),
        wind_speed_ms=within(number(details["wind_speed"]), 0, 150),
        humidity_percent=None if humidity is None else within(number(humidity), 0.1, 101),
        wind_direction_deg=optional(_direction, details.get("wind_from_direction")),
        symbol=symbol if isinstance(symbol, str) else None,
        precipitation_mm=optional(_amount, (hour.get("details") or {}).get("precipitation_amount")),
    )


def _direction(value: Any) -> float:
    return within(number(value), 0, 360)


def _amount(value: Any) -> float:
    return within(number(value), 0, 1000)


LOCATION_FORECAST = Source(
    "METNorway.locationforecast",
    request,
    parse,
    licence=LICENCE,
    hosts=METNO,
    fresh_s=30 * MINUTE,
    stamp=lambda steps: min(step.time for step in steps),  # a forecast begins with the hour in which it is made
    newest_max_s=12 * HOUR,
    keep_s=6 * HOUR,
    least=LEAST_STEPS,
    also=frozenset({203}),  # a version that will be retired
    conditional=True,
    user_input=True,
    probe=DEFAULT,
)
