"""GET /api/volcanoes."""

from typing import Annotated, Any, NamedTuple, TypeVar

from anyio import gather
from pydantic import ConfigDict, Field, RootModel

from tools.shared.disasters import EONET_FALLBACK, GDACS_SOURCES, gdacs_fallbacks, only_in_eonet
from tools.sources.eonet import EVENTS, NaturalEvent
from tools.sources.gdacs import Disaster
from tools.sources.smithsonian import WEEKLY_REPORT, VolcanoReport
from tools.sources.usgs_volcanoes import ELEVATED_VOLCANOES, ElevatedVolcano
from toolserver import (
    CardValue,
    Definition,
    Fallback,
    FallbackReader,
    Meaning,
    Payload,
    Picture,
    SourceEmpty,
    SourceError,
    Timestamp,
    ToolContext,
    lacking,
    tool,
    up_to,
    via,
)

T = TypeVar("T")

SHOWN = 40
SUMMARY = 400
PAGE = "https://volcano.si.edu/volcano.cfm?vn="
ELEVATED: Fallback[tuple[ElevatedVolcano, ...]] = via(ELEVATED_VOLCANOES)
REPORTS = "https://volcano.si.edu/reports_weekly.cfm"


class VolcanoItem(Payload):
    name: str = Field(description="Name of the volcano")
    country: str | None = Field(description="Country; null: not given")
    summary: str | None = Field(
        max_length=SUMMARY, description="Start of the report, cut at 400 characters; null: no report"
    )
    link: str = Field(description="Page of the volcano or of the report")
    category: str | None = Field(
        examples=["New Eruptive Activity"],
        description="The report's heading for it, such as New Eruptive Activity; null: no weekly report",
    )
    report_period: str | None = Field(description="Days of the report, as it writes them; null: no weekly report")
    published_at: Timestamp | None = Field(
        description="When the report or notice was published, or the event began; null: not given"
    )
    vnum: str | None = Field(description="Number in the Smithsonian catalogue; null: not given")
    lat: float | None = Field(description="Degrees north; null: not given")
    lon: float | None = Field(description="Degrees east; null: not given")
    us_alert_level: str | None = Field(
        examples=["WATCH"],
        description="USGS alert level for people on the ground; null: not raised, or not in the United States",
    )
    us_color_code: str | None = Field(
        examples=["ORANGE"], description="USGS aviation colour code; null: not raised, or not in the United States"
    )
    source: str = Field(description="List that it is from")


class Volcanoes(RootModel[Annotated[list[VolcanoItem], Field(max_length=SHOWN, description="Newest first")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


class Listed(NamedTuple):
    """Volcanoes, and whether they are the complete list of the weekly report."""

    items: list[VolcanoItem]
    complete: bool


@tool(
    path="/api/volcanoes",
    title="Volcanoes",
    search_hint="volcano eruption erupting active right now lava ash",
    ttl_s=3600,
    sources=(WEEKLY_REPORT, ELEVATED_VOLCANOES, EVENTS, *GDACS_SOURCES),
    headline=CardValue("0.name", "", "{0.country}, {0.category}"),
    pictures=(
        Picture("map", "Volcanoes in the news", label="name", time="published_at", mark="peak", legend="Volcanoes"),
    ),
)
async def volcanoes(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> Volcanoes:
    """Volcanoes that erupt or are restless this week, worldwide, with a summary of what happened, and the alert level
    and aviation colour of those in the United States. Use it for "which volcanoes are erupting?".

    Shape: at most 40, newest report first; volcanoes that only USGS has raised the alert for come last.
    `us_alert_level` and `us_color_code` are null elsewhere and for volcanoes at their usual level.
    Source: the Smithsonian's weekly report with USGS alert levels; when the report is missing, the eruptions that
    NASA EONET and GDACS list, without summaries. Refreshed every hour.
    """
    weekly: Fallback[Listed] = via(WEEKLY_REPORT, None, lambda report: Listed(from_reports(report), complete=True))
    reports, elevated = await gather(
        ctx.attempt("data.reports", weekly, lacking(eruptions_elsewhere(ctx), "summary", "category", "report_period")),
        ctx.attempt("data.us", ELEVATED),
    )
    if isinstance(reports, SourceError) and isinstance(elevated, SourceError):
        raise reports
    if isinstance(reports, SourceError):
        ctx.warn("data", "partial", "No list of the world answered: these are volcanoes of the United States.")
    elif not reports.complete:
        message = "The weekly report is missing; NASA EONET and GDACS list fewer volcanoes."
        ctx.warn("data", "degraded_fallback", message, WEEKLY_REPORT.name)
    listed: list[VolcanoItem] = [] if isinstance(reports, SourceError) else reports.items
    items = merged(listed, () if isinstance(elevated, SourceError) else elevated)
    return Volcanoes(ctx.page(items[:SHOWN], limit))


def from_reports(reports: tuple[VolcanoReport, ...]) -> list[VolcanoItem]:
    """Return the reported volcanoes, newest first; the summaries are cut, never rewritten."""
    newest_first = sorted(reports, key=lambda report: report.published_at, reverse=True)
    return [
        _item(
            report.name,
            "Smithsonian GVP",
            link=f"{PAGE}{report.vnum}" if report.vnum else report.link or REPORTS,
            country=report.country,
            summary=_cut(report.summary),
            category=report.category,
            report_period=report.period,
            published_at=report.published_at,
            vnum=report.vnum,
            lat=report.lat,
            lon=report.lon,
        )
        for report in newest_first
    ]


def merged(listed: list[VolcanoItem], elevated: tuple[ElevatedVolcano, ...]) -> list[VolcanoItem]:
    """Return the listed volcanoes with USGS's levels where raised, then those that only USGS lists."""
    levels = {volcano.vnum: volcano for volcano in elevated}
    items = [_with_level(item, levels.pop(item.vnum, None) if item.vnum else None) for item in listed]
    rest = sorted(levels.values(), key=lambda volcano: volcano.sent_at, reverse=True)
    return items + [_from_usgs(volcano) for volcano in rest]


def _with_level(item: VolcanoItem, volcano: ElevatedVolcano | None) -> VolcanoItem:
    if volcano is None:
        return item
    return item.model_copy(update={"us_alert_level": volcano.alert, "us_color_code": volcano.color})


def _from_usgs(volcano: ElevatedVolcano) -> VolcanoItem:
    link = volcano.url or f"{PAGE}{volcano.vnum}"
    item = _item(
        volcano.name, "USGS", link=link, country="United States", published_at=volcano.sent_at, vnum=volcano.vnum
    )
    return _with_level(item, volcano)


def eruptions_elsewhere(ctx: ToolContext) -> Fallback[Listed]:
    """Return the fallback that lists volcanoes of NASA EONET and GDACS; one of the two suffices."""

    async def fallback(reading: FallbackReader) -> Listed:
        events = await _or_error(reading, EONET_FALLBACK)
        disasters = await _or_error(reading, *gdacs_fallbacks(ctx.now))
        if isinstance(events, SourceError) and isinstance(disasters, SourceError):
            raise events
        erupting = () if isinstance(disasters, SourceError) else tuple(d for d in disasters if d.kind == "VO")
        others = () if isinstance(events, SourceError) else only_in_eonet(events, erupting)
        items = [_from_gdacs(d) for d in erupting] + [_from_eonet(event) for kind, event in others if kind == "VO"]
        if not items:
            raise SourceEmpty("no volcano in either list")
        return Listed(sorted(items, key=lambda item: item.published_at or ctx.now, reverse=True), complete=False)

    return fallback


async def _or_error(reading: FallbackReader, *fallbacks: Fallback[T]) -> T | SourceError:
    """Return the first fallback's value, or the last error."""
    failure: SourceError = SourceEmpty("no fallback")
    for fallback in fallbacks:
        try:
            return await fallback(reading)
        except SourceError as error:
            reading.note_failure(error)
            failure = error
    return failure


def _from_gdacs(disaster: Disaster) -> VolcanoItem:
    name = disaster.name.removeprefix("Eruption ")
    return _item(
        name,
        "GDACS",
        link=disaster.url or "https://www.gdacs.org",
        country=disaster.country,
        published_at=disaster.started_at,
        lat=disaster.lat,
        lon=disaster.lon,
    )


def _from_eonet(event: NaturalEvent) -> VolcanoItem:
    name, _, country = event.title.partition(" Volcano, ")
    return _item(
        name,
        "NASA EONET",
        link=event.url or "https://eonet.gsfc.nasa.gov",
        country=country or None,
        published_at=event.seen_at,
        lat=event.lat,
        lon=event.lon,
    )


def _item(name: str, source: str, **fields: Any) -> VolcanoItem:
    """Return an item in which every unknown field is null."""
    return VolcanoItem.model_validate(
        dict.fromkeys(VolcanoItem.model_fields) | fields | {"name": name, "source": source}
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= SUMMARY else text[: SUMMARY - 1].rstrip() + "…"


ALERT_LEVELS = Meaning(
    "volcanoes.us_alert_level",
    "USGS's own words (NORMAL, ADVISORY, WATCH, WARNING) and colours (GREEN, YELLOW, ORANGE, RED), unchanged: the two "
    "may differ, as one is for the ground and the other for aviation",
    definition=Definition(publisher="USGS", link="https://www.usgs.gov/volcano/alert-level-icons"),
)
