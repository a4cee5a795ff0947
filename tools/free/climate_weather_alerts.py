"""GET /api/climate/weather-alerts."""

from collections.abc import Callable
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from tools.sources.nws import ALERTS, ALL, FILTERED_ALERTS, Alert, AlertQuery, Certainty, Severity, Status, Urgency
from toolserver.context import ToolContext
from toolserver.payloads import Payload, Timestamp, TopLevel
from toolserver.registry import tool

LAND = (
    "AL AK AS AR AZ CA CO CT DE DC FL GA GU HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH"
    " OK OR PA PR RI SC SD TN TX UT VT VI VA WA WV WI WY MP PW FM MH"
)
SEA = "AM AN GM LC LE LH LM LO LS PH PK PM PS PZ SL"
AREAS = frozenset(f"{LAND} {SEA}".split())


def known_area(given: str) -> str:
    """The area's code in capitals, if the NWS knows it."""
    if given.upper() in AREAS:
        return given.upper()
    raise PydanticCustomError("unknown_area", "not a two-letter state, territory or marine area of the NWS")


def spelled(kind: Any) -> Callable[[Any], Any]:
    """Turns a word of the class into the class's own spelling, whatever its case."""
    words: dict[str, str] = {word.lower(): word for word in get_args(kind)}
    return lambda given: words.get(given.lower(), given) if isinstance(given, str) else given


Area = Annotated[str, Field(pattern="^[A-Za-z]{2}$"), AfterValidator(known_area)]
Event = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ()\-]{0,79}$")]


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
    filters: AlertFilters = Field(description="As understood; null: any")


@tool(
    path="/api/climate/weather-alerts",
    title="Weather alerts in the US",
    ttl_s=60,
    sources=(ALERTS, FILTERED_ALERTS),
)
async def climate_weather_alerts(
    ctx: ToolContext,
    area: Annotated[
        Area | None, Field(description="State, territory or marine area of the US", examples=["CA"])
    ] = None,
    event: Annotated[Event | None, Field(description="Exact name of the event", examples=["Tornado Warning"])] = None,
    severity: Annotated[Severity | None, BeforeValidator(spelled(Severity))] = None,
    urgency: Annotated[Urgency | None, BeforeValidator(spelled(Urgency))] = None,
    status: Annotated[
        Status, BeforeValidator(spelled(Status)), Field(description="Actual, or one of those not to be acted on")
    ] = "Actual",
    limit: Annotated[int, Field(ge=1, le=100, description="Most alerts to list")] = 50,
) -> WeatherAlerts:
    """Weather alerts that the US National Weather Service lists as active, with full text, filtered by state, exact
    event name, severity, urgency or status. Use severe_weather for a ranking of the gravest; this one for a place.

    Shape: newest first. The list is the service's own: it may hold messages that are cancelled, replaced by a newer
    one or over, as `message_type` and the times say. None is an answer.
    Source: the National Weather Service, refreshed every minute for each set of filters; there is no second source.
    """
    query = AlertQuery(area, event, severity, urgency, status)
    listed = await ctx.read(ALERTS if query == ALL else FILTERED_ALERTS, query)
    found = sorted(listed.alerts, key=lambda alert: alert.sent, reverse=True)
    return WeatherAlerts(
        data=[_item(alert) for alert in found[:limit]],
        count=min(limit, len(found)),
        total_matching=len(found),
        filters=AlertFilters(area=area, event=event, severity=severity, urgency=urgency, status=status, limit=limit),
    )


def _item(alert: Alert) -> WeatherAlert:
    return WeatherAlert(
        id=alert.id,
        event=alert.event,
        severity=alert.severity,
        urgency=alert.urgency,
        certainty=alert.certainty,
        message_type=alert.message_type,
        headline=alert.headline,
        description=alert.description,
        areaDesc=alert.area,
        sent=alert.sent,
        effective=alert.effective,
        expires=alert.expires,
        ends=alert.ends,
        sender_name=alert.sender,
        web=alert.web,
    )
