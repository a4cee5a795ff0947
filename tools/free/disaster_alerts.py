"""GET /api/disaster-alerts."""

from datetime import datetime, timedelta
from typing import Annotated, Literal, cast

from anyio import gather
from pydantic import ConfigDict, Field, RootModel

from tools.shared.disasters import EONET_FALLBACK, GDACS_SOURCES, KINDS, gdacs_fallbacks, only_in_eonet
from tools.sources.eonet import EVENTS, NaturalEvent
from tools.sources.gdacs import Disaster
from toolserver import (
    CardValue,
    Definition,
    Meaning,
    Payload,
    Picture,
    SourceError,
    Timestamp,
    ToolContext,
    tool,
    up_to,
)

SHOWN = 20
RECENT = timedelta(hours=48)
LASTING = ("VO", "DR")
ORDER = ("red", "orange", None, "green")

Kind = Literal["earthquake", "tropical_cyclone", "flood", "volcano", "wildfire", "drought", "tsunami", "storm"]


class DisasterItem(Payload):
    id: str = Field(examples=["gdacs:EQ1554511"], description="The list and its own id")
    type: Kind = Field(description="Kind of disaster")
    name: str = Field(description="Name or headline in the list's words")
    alert_level: Literal["green", "orange", "red"] | None = Field(
        description="GDACS's colour, of the worst episode so far; null: NASA EONET gives none"
    )
    present_alert_level: Literal["green", "orange", "red"] | None = Field(
        description="GDACS's colour of the present episode, which may be calmer; null: not given"
    )
    country: str | None = Field(description="Country or countries affected; null: not given")
    severity_text: str | None = Field(
        description="Size as the list states it, such as a magnitude, wind speed or acres; null: not given"
    )
    started_at: Timestamp = Field(description="When it began")
    ended_at: Timestamp | None = Field(description="When it ended, or was last seen or forecast; null: not given")
    current: bool | None = Field(description="Whether the list calls it current; null: not given")
    lat: float | None = Field(description="Degrees north of its centre; null: not given")
    lon: float | None = Field(description="Degrees east of its centre; null: not given")
    url: str | None = Field(description="Page or report of the event; null: none")
    source: str = Field(description="List that it is from: GDACS or NASA EONET")


class DisasterAlerts(RootModel[Annotated[list[DisasterItem], Field(max_length=SHOWN, description="Gravest first")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/disaster-alerts",
    title="Disaster alerts",
    search_hint="hurricanes cyclones typhoon flood drought natural disasters active worldwide are there any",
    ttl_s=300,
    sources=(*GDACS_SOURCES, EVENTS),
    headline=CardValue("0.name", "", "{0.alert_level} alert, {0.started_at}"),
    pictures=(
        Picture(
            "map",
            "Disasters with an alert: storms, floods, fires, quakes, volcanoes",
            label="name",
            time="started_at",
            mark="diamond",
            legend="Storms and other alerts",
        ),
    ),
)
async def disaster_alerts(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> DisasterAlerts:
    """Natural disasters that are going on or ended within 48 hours, worldwide: earthquakes, cyclones, floods,
    volcanoes, wildfires and droughts with GDACS's alert colour. Use it for "any disasters now?"; for all earthquakes
    use earthquakes.

    Shape: at most 20: red, orange, those without a colour, green, by the present episode; the newest first within each.
    Source: GDACS, its news feed when its list is down; storms, volcanoes, floods and wildfires from 1,000 acres that it
    does not list are added from NASA EONET. Refreshed every 5 to 15 minutes.
    """
    gdacs, eonet = await gather(
        ctx.attempt("data.gdacs", *gdacs_fallbacks(ctx.now)),
        ctx.attempt("data.eonet", EONET_FALLBACK),
    )
    if isinstance(gdacs, SourceError) and isinstance(eonet, SourceError):
        raise gdacs
    if isinstance(gdacs, SourceError):
        lacks = "alert_level, present_alert_level, country and ended_at"
        ctx.warn("data", "partial", f"GDACS is missing: only what NASA EONET lists is shown, without {lacks}.")
    disasters = () if isinstance(gdacs, SourceError) else gdacs
    events = () if isinstance(eonet, SourceError) else eonet
    items = [item for d in disasters if matters(d, ctx.now) and (item := from_gdacs(d))]
    items += [from_eonet(kind, event) for kind, event in only_in_eonet(events, disasters)]
    return DisasterAlerts(ctx.page(sorted(items, key=rank)[:SHOWN], limit))


ALERT_LEVEL = (
    Meaning(
        "disaster-alerts.alert_level",
        "GDACS's alertlevel is of the worst episode so far, episodealertlevel of the present one "
        "(present_alert_level), by which the list is in order: as its bodies show",
        definition=Definition(publisher="GDACS", link="https://www.gdacs.org"),
    ),
    Meaning(
        "disaster-alerts.current",
        "What ended within 48 hours counts; fires count from 1,000 acres; the same kind within 200 km and three days "
        "is one disaster",
    ),
)


def matters(disaster: Disaster, now: datetime) -> bool:
    """Return True if a disaster is ongoing, or ended within 48 hours.

    The mark `current` suffices only for kinds that last for weeks. The others are updated daily, and an outdated list
    would show storms that have ended.
    """
    ended = disaster.ended_at or disaster.started_at
    return (disaster.current is True and disaster.kind in LASTING) or ended >= now - RECENT


def from_gdacs(disaster: Disaster) -> DisasterItem | None:
    """Return the item, or None for a kind that this tool does not show."""
    if disaster.kind not in KINDS:
        return None
    return DisasterItem(
        id=f"gdacs:{disaster.kind}{disaster.id}",
        type=cast("Kind", KINDS[disaster.kind]),
        name=disaster.name,
        alert_level=disaster.level,
        present_alert_level=disaster.present,
        country=disaster.country,
        severity_text=disaster.severity,
        started_at=disaster.started_at,
        ended_at=disaster.ended_at,
        current=disaster.current,
        lat=_rounded(disaster.lat),
        lon=_rounded(disaster.lon),
        url=disaster.url,
        source="GDACS",
    )


def from_eonet(kind: str, event: NaturalEvent) -> DisasterItem:
    measured = event.magnitude is not None and event.unit
    return DisasterItem(
        id=f"eonet:{event.id}",
        type="storm" if kind == "TC" else cast("Kind", KINDS[kind]),
        name=event.title,
        alert_level=None,
        present_alert_level=None,
        country=None,
        severity_text=f"{event.magnitude:g} {event.unit}" if measured else None,
        started_at=event.started_at,
        ended_at=None,
        current=True,
        lat=_rounded(event.lat),
        lon=_rounded(event.lon),
        url=event.url,
        source="NASA EONET",
    )


def rank(item: DisasterItem) -> tuple[int, float]:
    """Return the place in the list: by the present colour, the newest first."""
    return ORDER.index(item.present_alert_level or item.alert_level), -item.started_at.timestamp()


def _rounded(degrees: float | None) -> float | None:
    return None if degrees is None else round(degrees, 4)
