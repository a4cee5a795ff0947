"""Read the next five launches from RocketLaunch.Live (JSON, no key). It has their times, but not their go status.

https://www.rocketlaunch.live/api
"""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, optional
from tools.parsing.spaceflight import Launch
from tools.sources.hosts import MINUTE, WEEK, other
from toolserver import Get, Licence, Source, SourceChanged, read_rows

NEXT = "https://fdo.rocketlaunch.live/json/launches/next/5"
# The page of the API asks for this credit. No clause about commercial use was found, for or against it.
LICENCE = Licence("unclear", "Data by RocketLaunch.Live", "https://www.rocketlaunch.live/api")
RESULTS = {0: "Failure", 1: "Success", 2: "Partial Failure", 3: "In-Flight Abort"}  # -1: not flown yet


def parse(body: Any, query: None) -> tuple[Launch, ...]:
    """Return every launch of the answer, in its order. Only an exact time becomes a time; others stay text."""
    launches = read_rows(body["result"], _launch)
    if len(launches) > 1 and all(launch.status in RESULTS.values() for launch in launches):
        raise SourceChanged("all of the coming launches have flown")
    return launches


def _launch(launch: dict[str, Any]) -> Launch:
    window_start = optional(from_iso, launch.get("win_open"))
    net = optional(from_iso, launch.get("t0")) or window_start
    pad = launch.get("pad") or {}
    missions = [name for mission in launch.get("missions") or [] if (name := _name(mission))]
    flown = RESULTS.get(launch["result"])
    return Launch(
        id=clean(str(launch["id"]), 60),
        name=clean(launch["name"]),
        provider=_name(launch.get("provider")),
        vehicle=_name(launch.get("vehicle")),
        mission=clean_or_none(", ".join(missions), NAME),
        mission_type=None,
        status=flown or "Scheduled",
        status_code=None,
        net=net,
        precision="minute" if net else "unknown",
        window_start=window_start,
        window_end=optional(from_iso, launch.get("win_close")),
        pad=_name(pad),
        location=_name(pad.get("location")),
        url=f"https://www.rocketlaunch.live/launch/{quote(slug, safe='')}" if (slug := launch.get("slug")) else None,
        date_text=clean_or_none(launch.get("date_str"), 60),
        updated_at=optional(from_iso, launch.get("modified")),
    )


def _name(value: Any) -> str | None:
    return clean_or_none(value.get("name"), NAME) if isinstance(value, dict) else None


def newest(launches: tuple[Launch, ...]) -> datetime | None:
    return max((launch.updated_at for launch in launches if launch.updated_at), default=None)


NEXT_LAUNCHES = Source(
    "RocketLaunchLive.next_launches",
    Get(NEXT),
    parse,
    licence=LICENCE,
    hosts=other("rocketlaunch-live"),
    fresh_s=15 * MINUTE,
    newest_max_s=2 * WEEK,
    timeout_s=10,
    newest=newest,
    untrusted=True,
)
