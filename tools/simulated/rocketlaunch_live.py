"""Simulate RocketLaunch.Live on the wire: the next five launches."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tools.simulated.spaceflight import SimLaunch, launches
from toolserver.world.model import Ask, Reply, World, serves

EXACT = ("SEC", "MIN")
MODIFIED_BEFORE = timedelta(days=10)  # of the launch: the last change of its entry
SAME: dict[str, Any] = {  # of every launch here
    "cospar_id": "",
    "mission_description": None,
    "t0": None,
    "win_close": None,
    "tags": [],
    "weather_summary": None,
    "weather_temp": None,
    "media": [],
    "result": -1,
    "suborbital": False,
}


def _answer(rows: list[dict[str, Any]]) -> Reply:
    body = {"valid_auth": False, "count": len(rows), "limit": 5, "total": len(rows), "last_page": 1, "result": rows}
    return Reply.json(body)


@serves(
    "RocketLaunchLive.next_launches", "fdo.rocketlaunch.live", "/json/launches/next/5", forms={"empty": _answer([])}
)
def following(world: World, ask: Ask) -> Reply:
    return _answer([_launch(launch) for launch in launches(world) if launch.net > world.now][:5])


@following.form("drift")
def lifted_off(world: World, ask: Ask) -> Reply:
    """Return launches with a known T-0, with members missing, and with one that has already flown."""
    upcoming = [_launch(launch) for launch in launches(world) if launch.net > world.now][:5]
    gone = ("weather_summary", "weather_temp", "media", "tags", "modified", "win_close", "missions")
    rows = [{k: v for k, v in row.items() if k not in gone} | {"t0": row["win_open"]} for row in upcoming]
    return _answer([rows[0] | {"id": 1, "result": 1}, *rows])


def _launch(launch: SimLaunch) -> dict[str, Any]:
    at = datetime.fromtimestamp(launch.net, UTC)
    exact = launch.precision in EXACT
    slug = "-".join(launch.mission.lower().split())
    return SAME | {
        "id": int(launch.id[-12:]),
        "sort_date": str(int(launch.net)),
        "name": launch.mission,
        "provider": {"id": 1, "name": launch.provider, "slug": launch.provider.lower()},
        "vehicle": {"id": 1, "name": launch.vehicle.removesuffix(" Block 5"), "company_id": 1, "slug": "vehicle"},
        "pad": {
            "id": 1,
            "name": launch.pad,
            "location": {
                "id": 1,
                "name": launch.location,
                "state": None,
                "statename": None,
                "country": "",
                "slug": "x",
            },
        },
        "missions": [{"id": 1, "name": launch.mission, "description": None}],
        "launch_description": f"A {launch.vehicle} rocket will launch the {launch.mission} mission.",
        "modified": (at - MODIFIED_BEFORE).isoformat(timespec="seconds"),
        "win_open": at.strftime("%Y-%m-%dT%H:%MZ") if exact else None,
        "est_date": {
            "month": at.month,
            "day": None if launch.precision == "M" else at.day,
            "year": at.year,
            "quarter": None,
        },
        "date_str": at.strftime("%b %Y") if launch.precision == "M" else at.strftime("%b %d"),
        "slug": slug,
    }
