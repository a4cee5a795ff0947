"""Read wildfires that are being fought in the United States from NIFC, as agencies report them (GeoJSON, no key).

https://data-nifc.opendata.arcgis.com
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch_ms, number, number_or_none, optional, within
from tools.sources.hosts import DAY, HOUR, MINUTE, other
from toolserver import Get, Licence, Proof, Source, SourceChanged, SourceLimited, read_rows

QUERY = (
    "https://services3.arcgis.com/T4QMspbfLg3qTGWY/arcgis/rest/services/"
    "WFIGS_Incident_Locations_Current/FeatureServer/0/query"
)
FIELDS = "IncidentName,IncidentSize,PercentContained,POOState,POOCounty,FireDiscoveryDateTime,ModifiedOnDateTime_dt"
LICENCE = Licence("attribution", "National Interagency Fire Center (WFIGS)", "https://data-nifc.opendata.arcgis.com")
OLDEST_YEAR = 2000
TOO_MANY = (429, 503)


class Incident(NamedTuple):
    """A wildfire. A field is None until it has been reported."""

    name: str
    state: str | None
    county: str | None
    acres: float | None
    contained_percent: float | None
    discovered_at: datetime | None
    modified_at: datetime | None


def parse(body: Any, query: None) -> tuple[Incident, ...]:
    """Return every incident that has a name. An error comes with status 200."""
    if error := body.get("error"):
        reason = clean(str(error.get("message")), 60)
        raise SourceLimited(reason) if error.get("code") in TOO_MANY else SourceChanged(reason)
    incidents = read_rows(body["features"], _named)
    if incidents and not any(incident.acres for incident in incidents):
        raise SourceChanged("no incident has burned acres")
    return incidents


def _named(feature: dict[str, Any]) -> Incident | None:
    row = feature["properties"]
    return _incident(row) if row["IncidentName"] else None


def _incident(row: dict[str, Any]) -> Incident:
    state = clean_or_none(row.get("POOState"), 20)
    acres = number_or_none(row["IncidentSize"])
    return Incident(
        name=clean(str(row["IncidentName"]), NAME),
        state=state.removeprefix("US-") if state else None,
        county=clean_or_none(row.get("POOCounty"), NAME),
        acres=within(acres, 0, 1e8) if acres else None,
        contained_percent=optional(_percent, row.get("PercentContained")),
        discovered_at=_time(row.get("FireDiscoveryDateTime")),
        modified_at=_time(row.get("ModifiedOnDateTime_dt")),
    )


def _percent(value: Any) -> float:
    return within(number(value), 0, 100)


def _time(milliseconds: Any) -> datetime | None:
    """Return a time, or None. Raises ValueError for a time in another century, which is an error."""
    if milliseconds is None:
        return None
    time = from_epoch_ms(milliseconds)
    within(time.year, OLDEST_YEAR, 2100)
    return time


def newest(incidents: tuple[Incident, ...]) -> datetime | None:
    return max((incident.modified_at for incident in incidents if incident.modified_at), default=None)


INCIDENTS = Source(
    "NIFC.wildfire_incidents",
    Get(
        QUERY,
        params={
            "where": "IncidentTypeCategory='WF'",
            "outFields": FIELDS,
            "orderByFields": "IncidentSize DESC",
            "resultRecordCount": "50",
            "f": "geojson",
        },
    ),
    parse,
    licence=LICENCE,
    hosts=other("nifc"),
    fresh_s=15 * MINUTE,
    keep_s=12 * HOUR,
    timeout_s=12,
    newest=newest,
    least=0,
    proof=Proof.by_newest(2 * DAY),
    untrusted=True,
)
