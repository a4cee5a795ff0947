"""GET /api/air-quality: the US index by bands, of the reporting area nearest to a point."""

import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from tools.parsing.fields import number, optional, within
from tools.parsing.places import DEFAULT, Latitude, Longitude, Place, distance_km, two_decimals
from tools.shared.geocoding import ChosenPlace, PlaceName, choose_place
from tools.sources.airnow import REPORTING_AREAS, Area
from tools.sources.geonames import CITIES
from tools.sources.open_meteo import AIR_QUALITY, AirQuality
from tools.sources.open_meteo_geocoding import GEOCODING
from toolserver import (
    CardValue,
    Definition,
    Meaning,
    Payload,
    SourceChanged,
    SourceEmpty,
    Timestamp,
    ToolContext,
    lacking,
    tool,
    via,
)

Band = Literal["good", "moderate", "unhealthy_sensitive", "unhealthy", "very_unhealthy", "hazardous"]
BANDS: tuple[tuple[float, Band], ...] = (
    (50, "good"),
    (100, "moderate"),
    (150, "unhealthy_sensitive"),
    (200, "unhealthy"),
    (300, "very_unhealthy"),
)
FARTHEST_KM = 60.0
AHEAD = timedelta(hours=1)  # how far a clock or the start of an hour may be ahead of ours


class Near(NamedTuple):
    """A reporting area and its distance."""

    area: Area
    distance_km: float


def aqi_band(aqi: int) -> Band:
    """Return the band of an index."""
    return next((band for most, band in BANDS if aqi <= most), "hazardous")


def whole_aqi(aqi: float) -> int:
    """Round an index to the nearest whole number, a half upwards, as EPA does."""
    return math.floor(aqi + 0.5)


US_AQI = (
    Meaning(
        "air-quality.us_aqi_band",
        "EPA's categories of the whole index: good to 50, moderate 100, unhealthy for sensitive groups 150, unhealthy "
        "200, very unhealthy 300, then hazardous; the index is rounded first, a half upwards",
        decide=lambda aqi: aqi_band(whole_aqi(aqi)),
        rows=(
            (50, "good"),
            (50.5, "moderate"),
            (51, "moderate"),
            (100, "moderate"),
            (100.5, "unhealthy_sensitive"),
            (101, "unhealthy_sensitive"),
            (150, "unhealthy_sensitive"),
            (151, "unhealthy"),
            (200, "unhealthy"),
            (201, "very_unhealthy"),
            (300, "very_unhealthy"),
            (301, "hazardous"),
        ),
        definition=Definition(
            publisher="U.S. EPA",
            link="https://www3.epa.gov/ttn/ozonehealth/figure14.html",
            words='"Good" (0 - 50) … "Moderate" (51 - 100) … "Unhealthy for Sensitive Groups" (101 - 150)',
            read_on=date(2026, 11, 28),
        ),
    ),
    Meaning(
        "air-quality.us_aqi_method",
        "Open-Meteo takes a plain mean of 24 hours for particles, EPA's current index (AirNow) is NowCast, weighted "
        "over 12 hours: after three hours of smoke the first may still be moderate and the second very unhealthy",
        definition=Definition(publisher="U.S. EPA, Open-Meteo"),
    ),
    Meaning(
        "air-quality.european_aqi",
        "EEA publishes bands by hour; the number within a band is Open-Meteo's interpolation",
        definition=Definition(publisher="European Environment Agency, Open-Meteo"),
    ),
)


def nearest(areas: Iterable[Area], place: Place, now: datetime) -> Near:
    """Return the nearest reporting area.

    Raises:
        SourceEmpty: no area is within `FARTHEST_KM`.
        SourceChanged: its measurement is dated in the future.
    """
    near = min(
        (Near(area, distance_km(*place, area.lat, area.lon)) for area in areas), key=lambda near: near.distance_km
    )
    if near.distance_km > FARTHEST_KM:
        raise SourceEmpty(f"no reporting area within {FARTHEST_KM:g} km")
    if near.area.time is not None and near.area.time > now + AHEAD:
        raise SourceChanged(f"{near.area.name} is dated {near.area.time:%Y-%m-%d %H:%M}, in the future")
    return near


class Station(Payload):
    name: str = Field(description="Reporting area of AirNow")
    distance_km: float = Field(description="Kilometres from the place to the middle of the area")
    pollutant: str = Field(
        description="Pollutant that the index is of: the one with the highest index", examples=["PM2.5"]
    )


MODELLED = ("european_aqi", "pm2_5", "pm10", "ozone", "nitrogen_dioxide", "sulphur_dioxide", "carbon_monoxide")
"""What only the model gives: the reporting areas have the US index alone."""


class AirQualityHere(Payload):
    lat: float = Field(description="Degrees north, two decimals")
    lon: float = Field(description="Degrees east, two decimals")
    place: str | None = Field(description="Name of the place, whole; null: only coordinates were given")
    default_location: bool = Field(description="True: no usable place was given, and this is Los Angeles")
    time: Timestamp | None = Field(description="Hour of the values; null: AirNow gives a time in an unknown zone")
    us_aqi: int | None = Field(
        description="U.S. AQI, modelled (particles as 24-hour means) or, with `station`, observed; null: none"
    )
    us_aqi_method: Literal["24h_mean", "nowcast"] | None = Field(
        description="24h_mean: modelled, smoke shows hours late; nowcast: observed, by the last hours; null: no index"
    )
    us_aqi_band: Band | None = Field(
        description="EPA's category of us_aqi: good to 50, then to 100, 150, 200 and 300; null without an index"
    )
    european_aqi: int | None = Field(
        description="European index, 0 to over 100, as Open-Meteo computes it; null: not modelled"
    )
    pm2_5: float | None = Field(description="Particles below 2.5 µm, µg/m³; null: not modelled")
    pm10: float | None = Field(description="Particles below 10 µm, µg/m³; null: not modelled")
    ozone: float | None = Field(description="Ozone, µg/m³; null: not modelled")
    nitrogen_dioxide: float | None = Field(description="Nitrogen dioxide, µg/m³; null: not modelled")
    sulphur_dioxide: float | None = Field(description="Sulphur dioxide, µg/m³; null: not modelled")
    carbon_monoxide: float | None = Field(description="Carbon monoxide, µg/m³; null: not modelled")
    unit: Literal["µg/m³"] = Field(description="Of the six concentrations")
    station: Station | None = Field(
        description="Reporting area that the index was observed in; null: all values are modelled"
    )


class AirReading(NamedTuple):
    """One provider's reading of the air; concentrations only where the provider models them."""

    time: datetime | None
    us_aqi: float | None
    modelled: AirQuality | None
    near: Near | None


def coordinate(limit: float) -> Callable[[Any], float | None]:
    """Return a reader of degrees within ± limit, with two decimals. Any other value counts as not given."""

    def degrees(value: Any) -> float:
        return two_decimals(within(number(value), -limit, limit))

    return lambda value: optional(degrees, value)


@tool(
    path="/api/air-quality",
    title="Air quality",
    search_hint="how is the air quality AQI pollution smog smoke PM2.5 in city",
    ttl_s=1800,
    sources=(AIR_QUALITY, REPORTING_AREAS, GEOCODING),
    shipped=(CITIES,),
    distinct=(("lat", "lon", "place"), 60, 3600),
    headline=CardValue("us_aqi", "US AQI", "{place|lat, lon}: {us_aqi_band}"),
)
async def air_quality(
    ctx: ToolContext,
    lat: Annotated[
        Latitude | None,
        BeforeValidator(coordinate(90)),
        Field(description="Latitude", json_schema_extra={"default": DEFAULT.lat}),
    ] = None,
    lon: Annotated[
        Longitude | None,
        BeforeValidator(coordinate(180)),
        Field(description="Longitude", json_schema_extra={"default": DEFAULT.lon}),
    ] = None,
    place: PlaceName | None = None,
) -> AirQualityHere:
    """Air quality at a place: US and European index, PM2.5, PM10, ozone, NO2, SO2, CO. Use it for "is the air good
    here?". Give `place`, or `lat` and `lon`; without them it answers for Los Angeles and says `default_location`.

    Shape: coordinates are rounded to two decimals; a missing or invalid one replaces both by the default. Values that
    the provider does not have are null. `station` is set when the index is that of the nearest U.S. reporting area,
    at most 60 km away: then there are no concentrations.
    Source: CAMS model by Open-Meteo, refreshed every 30 minutes; EPA AirNow when it is down.
    """
    point = None if lat is None or lon is None else Place(lat, lon)
    chosen = await choose_place(ctx, point, place)
    reading = await ctx.first(
        "data",
        via(AIR_QUALITY, chosen.place, lambda air: AirReading(air.time, air.us_aqi, air, None)),
        lacking(via(REPORTING_AREAS, None, partial(_measured, place=chosen.place, now=ctx.now)), *MODELLED),
    )
    return _shown(reading, chosen)


def _measured(areas: Any, place: Place, now: datetime) -> AirReading:
    near = nearest(areas, place, now)
    return AirReading(near.area.time, near.area.aqi, None, near)


def _shown(reading: AirReading, chosen: ChosenPlace) -> AirQualityHere:
    aqi = None if reading.us_aqi is None else whole_aqi(reading.us_aqi)
    air, near = reading.modelled, reading.near
    return AirQualityHere(
        lat=chosen.place.lat,
        lon=chosen.place.lon,
        place=chosen.name,
        default_location=chosen.by_default,
        time=reading.time,
        us_aqi=aqi,
        us_aqi_method=None if aqi is None else "24h_mean" if near is None else "nowcast",
        us_aqi_band=None if aqi is None else aqi_band(aqi),
        european_aqi=None if air is None or air.european_aqi is None else whole_aqi(air.european_aqi),
        pm2_5=_rounded(air and air.pm2_5),
        pm10=_rounded(air and air.pm10),
        ozone=_rounded(air and air.ozone),
        nitrogen_dioxide=_rounded(air and air.nitrogen_dioxide),
        sulphur_dioxide=_rounded(air and air.sulphur_dioxide),
        carbon_monoxide=_rounded(air and air.carbon_monoxide),
        unit="µg/m³",
        station=near
        and Station(name=near.area.name, distance_km=round(near.distance_km, 1), pollutant=near.area.pollutant),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
