"""Simulate AWS Health's current events on the wire: big-endian UTF-16 with a byte order mark."""

import json
from typing import Any

from tools.simulated.incidents import SimIncident, incidents
from toolserver.world.model import Ask, Reply, World, serves

STATUS = {"maintenance": "1", "minor": "2", "major": "3", "critical": "3"}
LISTED_S = 6 * 3600.0  # how long a resolved event stays listed


def _reply(events: list[dict[str, Any]]) -> Reply:
    text = json.dumps(events, indent=1)
    return Reply(b"\xfe\xff" + text.encode("utf-16-be"), content_type="application/json;charset=utf-16")


@serves("AWS.current_events", "health.aws.amazon.com", "/public/currentevents", forms={"empty": _reply([])})
def current_events(world: World, ask: Ask) -> Reply:
    return _reply([_event(world, i) for i in incidents(world, "AWS", world.now - LISTED_S)])


@current_events.form("drift")
def plain_utf8(world: World, ask: Ask) -> Reply:
    """Return the same events in UTF-8, with numbers for numeric strings."""
    events = [_event(world, i) for i in incidents(world, "AWS", world.now - LISTED_S)]
    return Reply.json([e | {"status": int(e["status"]), "date": int(e["date"])} for e in events])


def _event(world: World, incident: SimIncident) -> dict[str, Any]:
    over = incident.ended <= world.now
    status = STATUS[incident.impact]
    what = "AWS_MULTIPLE_SERVICES_OPERATIONAL_ISSUE"
    event: dict[str, Any] = {
        "date": f"{int(incident.began)}",
        "arn": f"arn:aws:health:us-west-2::event/MULTIPLE_SERVICES/{what}/{what}_SIM{incident.id}",
        "region_name": "Oregon",
        "status": "0" if over else status,
        "service": "multipleservices-us-west-2",
        "service_name": "Multiple services",
        "summary": f"[RESOLVED] {incident.title}" if over else incident.title,
        "event_log": [
            {
                "summary": incident.title,
                "message": "We are investigating.",
                "status": 1,
                "timestamp": int(incident.began),
            }
        ],
        "impacted_services": {
            "sts-us-west-2": {
                "service_name": "AWS Security Token Service",
                "current": "0" if over else status,
                "max": status,
            }
        },
    }
    return event | {"end_time": f"{int(incident.ended)}"} if over else event
