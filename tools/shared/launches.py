"""Rocket launches: the ways to get them, which are still to come, and the item they are shown as."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from tools.shared.patience import patiently
from tools.sources.launch_library import LAUNCHES, Launch, Precision
from tools.sources.rocketlaunch_live import NEXT_LAUNCHES
from toolserver.context import Leg, via
from toolserver.payloads import Payload, Timestamp

SOURCES = (LAUNCHES, NEXT_LAUNCHES)
PACED_S = 6.0  # a request to Launch Library may have to wait for the one before it
FAILED = ("Failure", "Launch Failure", "Partial Failure", "Launch was a Partial Failure", "In-Flight Abort")
FLOWN = ("Success", "Launch Successful", "Deployed", "Payload Deployed", *FAILED)
CREWED = "Human Exploration"  # the mission type of flights with people on board
_LAST = datetime.max.replace(tzinfo=UTC)


class LaunchItem(Payload):
    id: str
    name: str
    provider: str | None
    vehicle: str | None
    mission: str | None
    mission_type: str | None
    status: str
    status_code: str | None = Field(examples=["Go", "TBC", "TBD"])
    scheduled_time: Timestamp | None = Field(description="No earlier than")
    time_precision: Precision
    window_start: Timestamp | None
    window_end: Timestamp | None
    pad: str | None
    location: str | None
    url: str | None
    date_text: str | None = Field(description="The date in words, from the fallback only")


def launches() -> tuple[Leg[tuple[Launch, ...]], ...]:
    """All that is listed, what flew lately included."""
    return patiently(via(LAUNCHES), via(NEXT_LAUNCHES), PACED_S)


def flown(launch: Launch) -> bool:
    return launch.status in FLOWN or launch.status_code in FLOWN


def failed(launch: Launch) -> bool:
    return launch.status in FAILED or launch.status_code in FAILED


def crewed(launch: Launch) -> bool:
    return launch.mission_type == CREWED


def upcoming(listed: Iterable[Launch], now: datetime) -> list[Launch]:
    """Those that have not flown and are not more than an hour overdue, soonest first, without a time last."""
    late = now - timedelta(hours=1)
    open_ = [launch for launch in listed if not flown(launch) and (launch.net is None or launch.net >= late)]
    return sorted(open_, key=lambda launch: launch.net or _LAST)


def shown(launch: Launch) -> LaunchItem:
    return LaunchItem(
        id=launch.id,
        name=launch.name,
        provider=launch.provider,
        vehicle=launch.vehicle,
        mission=launch.mission,
        mission_type=launch.mission_type,
        status=launch.status,
        status_code=launch.status_code,
        scheduled_time=launch.net,
        time_precision=launch.precision,
        window_start=launch.window_start,
        window_end=launch.window_end,
        pad=launch.pad,
        location=launch.location,
        url=launch.url,
        date_text=launch.date_text,
    )
