"""Read the EMSC earthquake catalogue (FDSN event service, GeoJSON, no key).

https://www.seismicportal.eu/fdsn-wsevent.html
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tools.parsing.earthquakes import Quake, QuakeList, newest_quake, require_small
from tools.parsing.fields import clean, clean_or_none, from_iso, number, number_or_none, within
from tools.sources.hosts import HOUR, other
from toolserver import Get, Keys, Licence, Proof, Source, SourceChanged, read_rows

QUERY = "https://www.seismicportal.eu/fdsnws/event/1/query"
ROUNDING = 0.11  # the service selects events by magnitudes before rounding
# The site asks for credit. No clause about commercial use was found, for or against it.
LICENCE = Licence("unclear", "EMSC/CSEM", "https://www.emsc-csem.org/Special_reports/legal.php")


class EmscQuery(NamedTuple):
    """Events of at least a magnitude in the hours before a time (rounded by the caller, so that the query repeats)."""

    magnitude: float
    hours: int
    until: datetime
    limit: int = 500


def request(query: EmscQuery, keys: Keys) -> Get:
    return Get(
        QUERY,
        params={
            "format": "json",
            "minmag": f"{query.magnitude:g}",
            "start": (query.until - timedelta(hours=query.hours)).strftime("%Y-%m-%dT%H:%M:%S"),
            "orderby": "time",
            "limit": str(query.limit),
        },
    )


def parse(body: Any, query: EmscQuery) -> QuakeList:
    """Return every feature. No content (HTTP 204) means that there is no event."""
    if body is None:
        return QuakeList((), None)
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    quakes = read_rows(body["features"], lambda feature: _quake(feature["properties"]))
    if any(quake.magnitude is not None and quake.magnitude < query.magnitude - ROUNDING for quake in quakes):
        raise SourceChanged(f"events below M{query.magnitude:g}")
    require_small(quakes, query.magnitude)
    return QuakeList(quakes, None)


def _quake(properties: dict[str, Any]) -> Quake:
    depth = number_or_none(properties.get("depth"))  # the geometry's z is negative depth: not used
    event = clean(str(properties["unid"]), 60)
    updated = properties.get("lastupdate")
    return Quake(
        id=event,
        magnitude=within(number(properties["mag"]), -3, 10),
        place=clean(str(properties["flynn_region"])).title(),
        time=from_iso(properties["time"]),
        depth_km=depth,
        lat=within(number(properties["lat"]), -90, 90),
        lon=within(number(properties["lon"]), -360, 360),
        kind="earthquake",
        url=f"https://www.seismicportal.eu/eventdetails.html?unid={event}",
        magnitude_type=clean_or_none(properties.get("magtype"), 20),
        updated=from_iso(updated) if updated else None,
    )


QUAKES_QUERY = Source(
    "EMSC.earthquakes_query",
    request,
    parse,
    licence=LICENCE,
    hosts=other("emsc"),
    fresh_s=60,
    keep_s=HOUR,
    newest=newest_quake,
    least=0,
    proof=Proof.by_newest(12 * HOUR),
    lists="earthquakes",
    also=frozenset({204}),
    key=lambda query: (
        query.magnitude,
        query.hours,
        query.limit,
    ),  # the window moves with the clock, its meaning stays the same
    few_choices=True,
    untrusted=True,
    probe=lambda now: EmscQuery(2.5, 24, now.replace(second=0, microsecond=0)),
)
