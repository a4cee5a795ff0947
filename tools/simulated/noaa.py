"""Simulate NOAA's map of watches, warnings and advisories as ArcGIS answers it: only alerts
with a VTEC code, unclassed.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tools.simulated.alerts import SimAlert, in_force
from toolserver.world.model import Ask, Reply, World, serves


@serves(
    "NOAA.watch_warning_map",
    "mapservices.weather.noaa.gov",
    "/eventdriven/rest/services/WWA/watch_warn_adv/MapServer/1/query",
    forms={
        "error200": Reply.json(
            {
                "error": {
                    "code": 400,
                    "message": "Unable to complete operation.",
                    "details": ["Failed to execute query."],
                }
            }
        )
    },
)
def watch_warning_map(world: World, ask: Ask) -> Reply:
    return _map(world, ask, _iso)


@watch_warning_map.form("drift")
def epoch_times(world: World, ask: Ask) -> Reply:
    """Return times in epoch milliseconds, as ArcGIS writes fields of the type date."""
    return _map(world, ask, lambda at: int(at * 1000))


def _map(world: World, ask: Ask, time: Callable[[float], Any]) -> Reply:
    drawn = [a for a in in_force(world.at(world.now - world.now % 60)) if a.hazard.phenomenon]
    most = int(ask.params.get("resultRecordCount", "2000"))
    body: dict[str, Any] = {"displayFieldName": "prod_type", "features": [_drawn(a, time) for a in drawn[:most]]}
    if len(drawn) > most:
        body["exceededTransferLimit"] = True
    return Reply.json(body)


def _drawn(alert: SimAlert, time: Callable[[float], Any]) -> dict[str, Any]:
    return {
        "attributes": {
            "prod_type": alert.hazard.event,
            "event": f"{alert.number:04d}",
            "phenom": alert.hazard.phenomenon,
            "sig": alert.hazard.significance,
            "wfo": f"K{alert.office.code}",
            "issuance": time(alert.sent),
            "onset": time(alert.began),
            "ends": time(alert.ends),
            "expiration": time(alert.expires),
            "msg_type": alert.action,
            "cap_id": alert.id,
            "url": f"https://api.weather.gov/alerts/{alert.id}",
        }
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
