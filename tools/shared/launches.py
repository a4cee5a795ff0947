"""Get rocket launches, choose the upcoming ones, and show them as items."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from tools.parsing.spaceflight import Launch, Precision
from tools.sources.launch_library import LAUNCHES
from tools.sources.rocketlaunch_live import NEXT_LAUNCHES
from toolserver import Definition, Fallback, Meaning, Payload, SourceUnproved, Timestamp, delay_second, via

SOURCES = (LAUNCHES, NEXT_LAUNCHES)
OVERDUE = timedelta(days=2)  # a launch that has not flown by then gets another date
HELD = timedelta(hours=1)  # a count on hold stays listed after its time for so long
PACED_S = 6.0  # after a burst a request to Launch Library waits for its turn
FAILED = ("Failure", "Launch Failure", "Partial Failure", "Launch was a Partial Failure", "In-Flight Abort")
FLOWN = ("Success", "Launch Successful", "Deployed", "Payload Deployed", *FAILED)
CREWED = "Human Exploration"  # the mission type of flights with people on board
_LAST = datetime.max.replace(tzinfo=UTC)


class LaunchItem(Payload):
    id: str = Field(description="The list's id of the launch")
    name: str = Field(description="Vehicle and mission, as listed")
    provider: str | None = Field(description="Company or agency that launches; null: not given")
    vehicle: str | None = Field(description="Rocket; null: not given")
    mission: str | None = Field(description="Name of the mission; null: not given")
    mission_type: str | None = Field(
        description="Purpose in Launch Library's words; null: not given, or from the fallback"
    )
    status: str = Field(description="State in Launch Library's words; of the fallback Scheduled")
    status_code: str | None = Field(
        examples=["Go", "TBC", "TBD"], description="Launch Library's short form of the state; null from the fallback"
    )
    scheduled_time: Timestamp | None = Field(description="No earlier than, UTC; null: no exact time from the fallback")
    time_precision: Precision = Field(description="How much of scheduled_time is known; unknown: it may mean little")
    window_start: Timestamp | None = Field(description="When the launch window opens; null: not given")
    window_end: Timestamp | None = Field(description="When the launch window closes; null: not given")
    pad: str | None = Field(description="Launch pad; null: not given")
    location: str | None = Field(description="Launch site; null: not given")
    lat: float | None = Field(description="Degrees north of the pad; null from the fallback")
    lon: float | None = Field(description="Degrees east of the pad; null from the fallback")
    url: str | None = Field(description="Entry of the launch in the list; null: none")
    date_text: str | None = Field(description="The date in words; null: not from the fallback")


def launches(now: datetime) -> tuple[Fallback[tuple[Launch, ...]], ...]:
    """Return the fallbacks for all listed launches, recent ones included.

    They refuse a list of past launches only: some launch is always planned.
    """

    def living(listed: tuple[Launch, ...]) -> tuple[Launch, ...]:
        past = [launch for launch in listed if launch.net and launch.net < now - OVERDUE and not flown(launch)]
        if past or not upcoming(listed, now):
            raise SourceUnproved("every listed launch is over")
        return listed

    return delay_second(via(LAUNCHES, None, living), via(NEXT_LAUNCHES, None, living), PACED_S)


def flown(launch: Launch) -> bool:
    return launch.status in FLOWN or launch.status_code in FLOWN


def has_failed(launch: Launch) -> bool:
    return launch.status in FAILED or launch.status_code in FAILED


def is_crewed(launch: Launch) -> bool:
    return launch.mission_type == CREWED


def upcoming(listed: Iterable[Launch], now: datetime) -> list[Launch]:
    """Return the upcoming launches, soonest first, those without a time last."""
    ahead = [launch for launch in listed if not flown(launch) and (launch.net is None or is_ahead(launch, now))]
    return sorted(ahead, key=lambda launch: launch.net or _LAST)


def is_held(launch: Launch) -> bool:
    return launch.status == "On Hold" or launch.status_code == "Hold"


LAUNCHES_AHEAD = Meaning(
    "launches.scheduled_time",
    "A launch is listed until its time has come; one on hold for an hour more, since its count may go on; one known by "
    "day or month until that has ended. Words of state are Launch Library's own",
)


def is_ahead(launch: Launch, now: datetime) -> bool:
    """Return True if the launch is in the future; one known only by day or month is ahead until that has ended."""
    if launch.net is None or launch.precision not in ("day", "month"):
        held = HELD if is_held(launch) else timedelta(0)
        return launch.net is not None and launch.net > now - held
    if launch.precision == "month":
        return (launch.net.year, launch.net.month) >= (now.year, now.month)
    return launch.net.date() >= now.date()


def show_launch(launch: Launch) -> LaunchItem:
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
        lat=launch.lat,
        lon=launch.lon,
        url=launch.url,
        date_text=launch.date_text,
    )


LAUNCH_STATUS = Meaning(
    "launches.status",
    "Launch Library's own words: Go is confirmed by official or reliable sources, TBC and TBD are not",
    definition=Definition(publisher="The Space Devs"),
)
