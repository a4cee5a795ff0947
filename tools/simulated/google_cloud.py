"""Simulate Google Cloud's incident history on the wire: newest first, an open incident has no end."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.incidents import DAY, SimIncident, incidents
from toolserver.world.model import Ask, Reply, World, serves

HISTORY_DAYS = 30
SEVERITY = {"minor": "medium", "maintenance": "low", "major": "high", "critical": "high"}
IMPACT = {
    "minor": "SERVICE_DISRUPTION",
    "maintenance": "SERVICE_INFORMATION",
    "major": "SERVICE_DISRUPTION",
    "critical": "SERVICE_OUTAGE",
}
PLACE = {"title": "Netherlands (europe-west4)", "id": "europe-west4"}


@serves("GoogleCloud.incidents", "status.cloud.google.com", "/incidents.json", forms={"empty": Reply.json([])})
def history(world: World, ask: Ask) -> Reply:
    return Reply.json([_incident(world, i) for i in _past(world)], last_modified=_changed(world))


@history.form("drift")
def null_for_absent(world: World, ask: Ask) -> Reply:
    """Return an open incident with a null end, and members in another order."""
    entries = [_incident(world, i) for i in _past(world)]
    return Reply.json([dict(reversed(({"end": None} | i).items())) for i in entries])


def _past(world: World) -> list[SimIncident]:
    return incidents(world, "Google Cloud", world.now - HISTORY_DAYS * DAY)


def _changed(world: World) -> float:
    """Return when the file last changed: an incident began or ended."""
    return max(t for i in _past(world) for t in (i.began, i.ended) if t <= world.now)


def _incident(world: World, incident: SimIncident) -> dict[str, Any]:
    is_open = incident.ended > world.now
    began, changed = _time(incident.began), _time(min(incident.began + 300, world.now) if is_open else incident.ended)
    update = {
        "created": changed,
        "modified": changed,
        "when": changed,
        "text": f"## \\# Summary\n{incident.title} in europe-west4.",
        "status": IMPACT[incident.impact] if is_open else "AVAILABLE",
        "affected_locations": [PLACE] if is_open else [],
    }
    entry: dict[str, Any] = {
        "id": f"sim{incident.id}",
        "number": f"{int(incident.began) * 7919}",
        "begin": began,
        "created": _time(incident.began + 120),
        "modified": changed,
        "external_desc": f"{incident.title} in europe-west4",
        "updates": [update],
        "most_recent_update": update,
        "status_impact": IMPACT[incident.impact],
        "severity": SEVERITY[incident.impact],
        "service_key": "zall",
        "service_name": "Multiple Products",
        "affected_products": [{"title": "Google Compute Engine", "id": "L3ggmi3Jy4xJmgodFA9K"}],
        "uri": f"incidents/sim{incident.id}",
        "currently_affected_locations": [PLACE] if is_open else [],
        "previously_affected_locations": [] if is_open else [PLACE],
    }
    return entry if is_open else entry | {"end": changed}


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
