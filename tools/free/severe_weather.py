"""GET /api/severe-weather."""

from typing import Annotated, get_args

from pydantic import Field

from tools.shared.alerts import ALERT_SOURCES, RankedAlert, Ranking, alert_fallbacks, category
from tools.sources.noaa import WATCH_WARNING_MAP
from tools.sources.nws import Certainty, Severity, Urgency
from toolserver import CardValue, Payload, Picture, SourceEmpty, Timestamp, ToolContext, tool, up_to

SHOWN = 15


class SevereAlert(Payload):
    id: str = Field(description="Id of the message, or of the hazard on the map")
    event: str = Field(examples=["Tornado Warning"], description="Name of the event in the words of the NWS")
    severity: Severity = Field(description="How grave the NWS takes it to be (CAP); Unknown from the map")
    urgency: Urgency = Field(description="How soon to act (CAP); Unknown from the map")
    certainty: Certainty = Field(description="How sure the NWS is of it (CAP); Unknown from the map")
    score: float = Field(description="Our weights of severity x urgency x certainty, 0.125 to 64")
    area: str = Field(description="Counties and zones in words, or the office's area from the map")
    headline: str | None = Field(description="Headline of the message; null: none")
    effective: Timestamp = Field(description="From when the message is valid, or when it was issued")
    expires: Timestamp = Field(description="When the message is void")
    ends: Timestamp | None = Field(description="When the weather ends; null: not given")
    sender: str | None = Field(description="Office of the NWS that sent it; null: not given")
    category: str = Field(
        description="Our word: tornado, tropical, flood, thunderstorm, winter, fire, heat, wind, marine or other"
    )
    url: str | None = Field(description="Address of the message; null: none")


class SeverityCounts(Payload):
    Extreme: int = Field(description="Alerts of this severity in force")
    Severe: int = Field(description="Alerts of this severity in force")
    Moderate: int = Field(description="Alerts of this severity in force")
    Minor: int = Field(description="Alerts of this severity in force")
    Unknown: int = Field(description="Alerts of this severity in force, or all from the map")


class SevereWeather(Payload):
    total_active: int = Field(
        ge=0, description="Alerts in force: warnings, watches, advisories, statements; the list shows the gravest"
    )
    counts_by_severity: SeverityCounts = Field(description="All alerts in force by severity")
    top: list[SevereAlert] = Field(max_length=SHOWN, description="Highest score first")


@tool(
    path="/api/severe-weather",
    title="Severe weather in the US",
    search_hint="worst storm storms tornado hurricane dangerous extreme America today",
    ttl_s=60,
    sources=ALERT_SOURCES,
    headline=CardValue("total_active", "alerts", "in the USA, {counts_by_severity.Extreme} extreme"),
    pictures=(Picture("bars", "Alerts in force by severity", rows="counts_by_severity"),),
)
async def severe_weather(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> SevereWeather:
    """The 15 gravest weather alerts now in force in the United States, ranked by severity x urgency x certainty, and
    how many there are of each severity. Use it for "any dangerous weather?"; to filter by state or event use
    climate_weather_alerts.

    Shape: alerts that are over, cancelled or replaced by a newer message are left out and not counted.
    Source: the National Weather Service, refreshed every minute. When it is down, NOAA's map of warnings: it has no
    severity, urgency and certainty, so that they are `Unknown` and warnings come before watches and advisories.
    """
    ranking = await ctx.first("data", *alert_fallbacks(ctx.now))
    _admit(ctx, ranking)
    severities = [alert.severity for alert in ranking.alerts]
    return SevereWeather(
        total_active=len(ranking.alerts),
        counts_by_severity=SeverityCounts(**{name: severities.count(name) for name in get_args(Severity)}),
        top=[_item(alert) for alert in ctx.page(ranking.alerts[:SHOWN], limit, "data.top")],
    )


def _admit(ctx: ToolContext, ranking: Ranking) -> None:
    """Warn about the limits of the ranking. Raises SourceEmpty when a stale ranking has no alert left."""
    if not ranking.alerts and ctx.notes.stale():
        ctx.warn("data", "section_unavailable", "Every known alert has ended, and newer ones could not be read.")
        raise SourceEmpty("every known alert has ended")
    if not ranking.classed:
        ctx.warn(
            "data.top",
            "degraded_fallback",
            "The map has no severity, urgency, certainty, headline and sender; the order is by kind: warning, watch, "
            "advisory, statement.",
            WATCH_WARNING_MAP.name,
        )
    if ranking.truncated:
        ctx.warn("data", "truncated", "The map holds more alerts than one answer; not all are counted.")


def _item(alert: RankedAlert) -> SevereAlert:
    return SevereAlert(
        id=alert.id,
        event=alert.event,
        severity=alert.severity,
        urgency=alert.urgency,
        certainty=alert.certainty,
        score=alert.score,
        area=alert.area,
        headline=alert.headline,
        effective=alert.effective,
        expires=alert.expires,
        ends=alert.ends,
        sender=alert.sender,
        category=category(alert.event),
        url=alert.url,
    )
