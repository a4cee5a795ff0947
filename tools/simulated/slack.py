"""Simulate Slack's status page on the wire: dates in San Francisco time, escaped slashes."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from tools.simulated.incidents import SimIncident, current
from toolserver.world.model import Ask, Reply, World, serves

PACIFIC = timezone(timedelta(hours=-7))
KINDS = {"critical": "outage", "maintenance": "maintenance"}


@serves("Slack.current_status", "slack-status.com", "/api/v2.0.0/current")
def status(world: World, ask: Ask) -> Reply:
    text = json.dumps(_body(world, current(world, "Slack")), separators=(",", ":")).replace("/", "\\/")
    return Reply.text(text, content_type="application/json; charset=utf-8")


@status.form("drift")
def other_order(world: World, ask: Ask) -> Reply:
    """Return members in another order, one more, and slashes that are not escaped."""
    body = _body(world, current(world, "Slack"))
    return Reply.json({"version": "v2.1.0"} | dict(reversed(body.items())))


def _body(world: World, incident: SimIncident | None) -> dict[str, Any]:
    since = _time(incident.began if incident else world.now - world.now % 86400)
    return {
        "status": "active" if incident else "ok",
        "date_created": since,
        "date_updated": since,
        "active_incidents": [_incident(incident)] if incident else [],
    }


def _incident(incident: SimIncident) -> dict[str, Any]:
    began = _time(incident.began)
    return {
        "id": int(incident.began) % 100000,
        "date_created": began,
        "date_updated": began,
        "title": incident.title,
        "type": KINDS.get(incident.impact, "incident"),
        "status": "active",
        "url": f"https://status.slack.com/{began[:7]}/sim{incident.id}",
        "services": ["Connections"],
        "notes": [{"date_created": began, "body": "We are investigating."}],
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, PACIFIC).isoformat(timespec="seconds")
