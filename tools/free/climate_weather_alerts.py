"""GET /api/climate/weather-alerts."""

from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from tools.shared.alerts import find_event, in_force, spell_event
from tools.sources.nws import ALERTS, ALL, FILTERED_ALERTS, Alert, AlertQuery, Certainty, Severity, Status, Urgency
from toolserver import Cursor, Payload, Timestamp, ToolContext, TopLevel, find_word, tool, up_to

LAND = (
    "AL AK AS AR AZ CA CO CT DE DC FL GA GU HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH"
    " OK OR PA PR RI SC SD TN TX UT VT VI VA WA WV WI WY MP PW FM MH"
)
TEXTS, LEAST_TEXT = 15_000, 250  # characters of all descriptions of an answer, and the minimum for one
SEA = "AM AN GM LC LE LH LM LO LS PH PK PM PS PZ SL"
AREAS = frozenset(f"{LAND} {SEA}".split())


def known_area(area: str) -> str:
    """Return the area's code in capitals. Raises PydanticCustomError if the NWS does not know it."""
    if (code := find_word(area, AREAS)) is not None:
        return code
    raise PydanticCustomError("unknown_area", "not a two-letter state, territory or marine area of the NWS")


Area = Annotated[str, AfterValidator(known_area), WithJsonSchema({"type": "string", "enum": sorted(AREAS)})]
Event = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ()\-]{0,79}$"), AfterValidator(spell_event)]


class WeatherAlert(Payload):
    id: str
    event: str
    severity: Severity
    urgency: Urgency
    certainty: Certainty
    message_type: str = Field(description="Alert, Update, or Cancel: called off")
    headline: str | None
    description: str | None
    areaDesc: str
    sent: Timestamp
    effective: Timestamp
    expires: Timestamp = Field(description="When the message is void")
    ends: Timestamp | None = Field(description="When the weather ends")
    sender_name: str | None
    web: str | None


class AlertFilters(Payload):
    area: str | None
    event: str | None
    severity: Severity | None
    urgency: Urgency | None
    status: Status
    limit: int


class WeatherAlerts(TopLevel):
    data: list[WeatherAlert] = Field(max_length=100, description="Newest first")
    count: int = Field(ge=0, description="Alerts listed")
    total_matching: int = Field(ge=0, description="Alerts that match; `limit` cuts the list")
    next_cursor: str | None = Field(description="For `cursor`: where the list goes on")
    filters: AlertFilters = Field(description="As understood; null: any")


@tool(
    path="/api/climate/weather-alerts",
    title="Weather alerts in the US",
    search_hint="flood tornado storm heat warning warnings watch in state any there",
    ttl_s=60,
    sources=(ALERTS, FILTERED_ALERTS),
    distinct=(("status",), 5, 3600),
)
async def climate_weather_alerts(
    ctx: ToolContext,
    area: Annotated[
        Area | None, Field(description="State, territory or marine area of the US", examples=["CA"])
    ] = None,
    event: Annotated[
        Event | None, Field(description="Name of an event of the NWS", examples=["Tornado Warning"])
    ] = None,
    severity: Annotated[Severity | None, Field(description="How grave it is, in the words of the NWS")] = None,
    urgency: Annotated[Urgency | None, Field(description="How soon to act, in the words of the NWS")] = None,
    status: Annotated[Status, Field(description="Actual, or one of those not to be acted on")] = "Actual",
    limit: Annotated[int, up_to(100)] = 50,
    cursor: Cursor | None = None,
) -> WeatherAlerts:
    """Weather alerts that the US National Weather Service lists as active, with their text, filtered by state,
    event name, severity, urgency or status. Use severe_weather for a ranking of the gravest; this one for a place.

    Shape: newest first, in pages of `limit`. Texts are cut where there are many: with `limit` 10 each has up to 1,500
    characters. Messages that are over, cancelled or replaced by a newer one are left out. None is an answer:
    it is cut from the list of the whole country, which is never empty.
    Source: the National Weather Service, refreshed every minute; there is no second source.
    Errors: an event that the service does not know is `invalid_arguments`, with the nearest names.
    """
    listed = await _listed(ctx, status)
    if event is not None:
        event = find_event(event, (alert.event for alert in listed))
    query = AlertQuery(area, event, severity, urgency, status)
    matching = [alert for alert in listed if _matches(alert, query)]
    newest_first = sorted(in_force(matching, ctx.now), key=lambda alert: alert.sent, reverse=True)
    page = ctx.page_from(newest_first, limit, cursor, lambda alert: alert.id)
    room = _room_for_text(ctx, page.items)
    return WeatherAlerts(
        data=[_item(alert, room) for alert in page.items],
        count=len(page.items),
        total_matching=page.total,
        next_cursor=page.next_cursor,
        filters=AlertFilters(area=area, event=event, severity=severity, urgency=urgency, status=status, limit=limit),
    )


async def _listed(ctx: ToolContext, status: Status) -> tuple[Alert, ...]:
    """Return the messages of the whole country; those of a status other than Actual need a request of their own."""
    if status == "Actual":
        return (await ctx.read(ALERTS, ALL)).alerts
    return (await ctx.read(FILTERED_ALERTS, AlertQuery(status=status))).alerts


def _matches(alert: Alert, query: AlertQuery) -> bool:
    filters = (
        (query.event, alert.event),
        (query.severity, alert.severity),
        (query.urgency, alert.urgency),
    )
    return all(wanted is None or wanted == stated for wanted, stated in filters) and (
        query.area is None or query.area in alert.states
    )


def _room_for_text(ctx: ToolContext, alerts: list[Alert]) -> int:
    """Return how many characters each description may have; a warning says when one is cut."""
    room = max(LEAST_TEXT, TEXTS // max(1, len(alerts)))
    if any(len(alert.description or "") > room for alert in alerts):
        ctx.warn("data.description", "truncated", f"Descriptions are cut at {room} characters; fewer alerts have more.")
    return room


def _cut(text: str | None, room: int) -> str | None:
    return text if text is None or len(text) <= room else f"{text[: room - 1].rstrip()}…"


def _item(alert: Alert, room: int) -> WeatherAlert:
    return WeatherAlert(
        id=alert.id,
        event=alert.event,
        severity=alert.severity,
        urgency=alert.urgency,
        certainty=alert.certainty,
        message_type=alert.message_type,
        headline=alert.headline,
        description=_cut(alert.description, room),
        areaDesc=alert.area,
        sent=alert.sent,
        effective=alert.effective,
        expires=alert.expires,
        ends=alert.ends,
        sender_name=alert.sender,
        web=alert.web,
    )
