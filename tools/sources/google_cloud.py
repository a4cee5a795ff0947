"""Read Google Cloud's incident history (JSON, no key). The file goes back years; only open incidents are kept.

https://status.cloud.google.com/incidents.schema.json
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import clean, clean_or_none, from_iso
from tools.sources.hosts import MINUTE, STATUS
from toolserver import MIB, Get, Licence, Proof, Source, SourceChanged, SourceUnproved, read_rows

MOST_OPEN = 10  # incidents at once; more without an end mean that ends are no longer given
LICENCE = Licence("unclear", "Google Cloud Service Health", "https://status.cloud.google.com")


class GoogleIncident(NamedTuple):
    """An incident without an end.

    `impact` is SERVICE_INFORMATION, SERVICE_DISRUPTION or SERVICE_OUTAGE, `severity` low,
    medium or high; each is empty when the page does not state it.
    """

    id: str
    impact: str
    severity: str
    description: str
    service: str | None
    began_at: datetime


def parse(body: Any, query: None) -> tuple[GoogleIncident, ...]:
    """Return the open incidents, in the order of the file: newest first."""
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    if not body:
        raise SourceUnproved("a history of years is never empty")
    if len(body) > MOST_OPEN and not any(incident.get("end") for incident in body):
        raise SourceChanged("no incident of a history has ended")
    return read_rows(body, lambda incident: None if incident.get("end") else _incident(incident))


def _incident(incident: dict[str, Any]) -> GoogleIncident:
    return GoogleIncident(
        id=clean(str(incident["id"]), 60),
        impact=clean(str(incident.get("status_impact") or ""), 40).upper(),
        severity=clean(str(incident.get("severity") or ""), 20).lower(),
        description=clean(incident["external_desc"]),
        service=clean_or_none(incident.get("service_name")),
        began_at=from_iso(incident["begin"]),
    )


def newest(incidents: tuple[GoogleIncident, ...]) -> datetime | None:
    return max((incident.began_at for incident in incidents), default=None)


GOOGLE_CLOUD_INCIDENTS = Source(
    "GoogleCloud.incidents",
    Get("https://status.cloud.google.com/incidents.json"),
    parse,
    licence=LICENCE,
    hosts=STATUS,
    fresh_s=120,
    ageless="the newest incident may be months ago",
    keep_s=30 * MINUTE,
    timeout_s=12,
    max_bytes=24 * MIB,
    conditional=True,
    newest=newest,
    least=0,
    proof=Proof.harmless("open incidents are cut from a history that is never empty, as the parser requires"),
    untrusted=True,
)
