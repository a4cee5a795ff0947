"""Read the state of well-known services from their status pages, in one vocabulary."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Literal, NamedTuple, TypeVar

from anyio import fail_after, gather
from pydantic import Field

from tools.sources.aws import AWS_EVENTS, AwsEvent
from tools.sources.azure import AZURE_STATUS, AzureFeed
from tools.sources.google_cloud import GOOGLE_CLOUD_INCIDENTS, GoogleIncident
from tools.sources.slack import SLACK_STATUS, SlackStatus
from tools.sources.statuspage import HOSTS, STATUSPAGES, Component, PageSummary
from toolserver import (
    Definition,
    Fallback,
    FallbackReader,
    Meaning,
    Payload,
    Source,
    SourceDown,
    SourceError,
    Timestamp,
    ToolContext,
    via,
)

T = TypeVar("T")

Status = Literal["operational", "maintenance", "degraded", "partial_outage", "major_outage", "unknown"]
_WORSE: tuple[Status, ...] = ("operational", "maintenance", "degraded", "partial_outage", "major_outage")

UNREACHABLE = "status page unreachable"
PAGE_S = 5.0


class PageReading(NamedTuple):
    """The state that a status page reports, in our word and its own."""

    status: Status
    description: str


class StatusPage(NamedTuple):
    """A service and the way to read its state."""

    name: str
    url: str
    fallback: Fallback[PageReading]


class ServiceItem(Payload):
    name: str = Field(examples=["GitHub"], description="Name of the service")
    status: Status = Field(
        description="Our word for what its status page reports, of OpenAI about its API; unknown: the page does not "
        "answer"
    )
    description: str = Field(
        description="The status page's own words, those of its worst open event, or the endpoints in trouble (OpenAI)"
    )
    url: str = Field(description="The status page")
    checked_at: Timestamp | None = Field(description="When the status page was read; null: it does not answer")


STATUSPAGE_WORDS: dict[str, Status] = {
    "none": "operational",
    "minor": "degraded",
    "major": "partial_outage",
    "critical": "major_outage",
    "maintenance": "maintenance",
}
COMPONENT_WORDS: dict[str, Status] = {
    "operational": "operational",
    "under_maintenance": "maintenance",
    "degraded_performance": "degraded",
    "partial_outage": "partial_outage",
    "major_outage": "major_outage",
}
OPENAI_API = frozenset(
    {
        "Assistants", "Audio", "Batch", "Chat Completions", "Embeddings", "Files", "Fine-tuning", "Images",
        "Moderations", "Realtime", "Responses",
    }
)  # fmt: skip
"""The components of OpenAI's page that are endpoints of its API; the others are ChatGPT, Codex, Sora and sign-in."""
GOOGLE_WORDS: dict[str, Status] = {
    "SERVICE_INFORMATION": "operational",
    "SERVICE_DISRUPTION": "degraded",
    "SERVICE_OUTAGE": "major_outage",
}
AWS_WORDS: dict[int, Status] = {1: "operational", 2: "degraded", 3: "partial_outage"}
SLACK_WORDS: dict[str, Status] = {
    "outage": "major_outage",
    "incident": "degraded",
    "maintenance": "maintenance",
    "notice": "operational",
}


def from_statuspage(summary: PageSummary) -> PageReading:
    status = STATUSPAGE_WORDS[summary.indicator]
    return PageReading(status, summary.description or status.replace("_", " "))


def from_openai(summary: PageSummary) -> PageReading:
    """Return the worst state of an endpoint of the API; the page's verdict follows ChatGPT.

    A page that lists none of these endpoints is read by its verdict, and the description says so.
    """
    endpoints = [component for component in summary.components if component.name in OPENAI_API]
    page = from_statuspage(summary)
    if not endpoints:
        return PageReading(page.status, f"The page as a whole: {page.description}")
    troubled = [(component, word) for component in endpoints if (word := component_word(component)) != "operational"]
    if troubled:
        parts = ", ".join(f"{component.name} ({component.state.replace('_', ' ')})" for component, _ in troubled)
        return PageReading(max((word for _, word in troubled), key=_WORSE.index), f"API: {parts}")
    if page.status == "operational":
        return page
    return PageReading("operational", f"API operational; the page as a whole: {page.description}")


def component_word(component: Component) -> Status:
    """Return our word for the state of a component; a state that is added later is no calm one."""
    return COMPONENT_WORDS.get(component.state, "degraded")


def from_slack(slack: SlackStatus) -> PageReading:
    """Return the worst active incident; a kind that Slack adds later counts as an incident."""
    if slack.status == "ok":
        return PageReading("operational", "No active incident")
    readings = [PageReading(SLACK_WORDS.get(i.kind, "degraded"), i.title) for i in slack.incidents]
    return _worst(readings, PageReading("degraded", "Active incident, no details"))


def from_google_cloud(incidents: tuple[GoogleIncident, ...]) -> PageReading:
    """Return the worst open incident, the newest of several; a mere notice leaves the service operational."""
    readings = [PageReading(google_word(i.impact, i.severity), i.description) for i in incidents]
    return _worst(readings, PageReading("operational", "No open incident"))


def google_word(impact: str, severity: str) -> Status:
    """Return our word for an open incident: by its impact, of disruptions and unknown impacts also by its severity."""
    word = GOOGLE_WORDS.get(impact, "degraded")
    return "partial_outage" if word == "degraded" and severity == "high" else word


def from_aws(events: tuple[AwsEvent, ...]) -> PageReading:
    """Return the worst current event; resolved ones stay listed for a while and do not count."""
    readings = [
        PageReading(AWS_WORDS[e.level], f"{e.service}, {e.region}: {e.summary}" if e.region else e.summary)
        for e in events
        if e.level > 0
    ]
    return _worst(readings, PageReading("operational", "No current event"))


def from_azure(feed: AzureFeed) -> PageReading:
    """Return the worst item. Every item is an ongoing event."""
    readings = [PageReading("degraded", item.title) for item in feed.items]
    return _worst(readings, PageReading("operational", "No active event"))


SERVICE_STATUS = (
    Meaning(
        "service-status.status",
        "Statuspage's indicator of the page as a whole: minor is degraded, major partial_outage, critical major_outage",
        decide=STATUSPAGE_WORDS.__getitem__,
        rows=(
            ("none", "operational"),
            ("minor", "degraded"),
            ("major", "partial_outage"),
            ("critical", "major_outage"),
            ("maintenance", "maintenance"),
        ),
        definition=Definition(publisher="Atlassian Statuspage", link="https://www.githubstatus.com/api"),
    ),
    Meaning(
        "service-status.status",
        "Of OpenAI the worst state of the endpoints of its API, since the page's own verdict follows ChatGPT: "
        + ", ".join(sorted(OPENAI_API))
        + ". A state that is not listed here counts as degraded",
        decide=lambda rows: from_openai(PageSummary("major", "Partial System Outage", _components(rows))).status,
        rows=(
            (("Responses operational", "Voice mode major_outage"), "operational"),
            (("Responses degraded_performance", "Audio operational"), "degraded"),
            (("Batch partial_outage", "Files degraded_performance"), "partial_outage"),
            (("Chat Completions major_outage",), "major_outage"),
            (("Embeddings under_maintenance",), "maintenance"),
            (("Embeddings on_fire",), "degraded"),
            (("Voice mode operational",), "partial_outage"),
        ),
    ),
    Meaning(
        "service-status.status",
        "Of Google Cloud by status_impact: a notice is operational, a disruption degraded or, of high severity, "
        "partial_outage, an outage major_outage. Notices and disruptions are our words",
        decide=lambda row: google_word(*row),
        rows=(
            (("SERVICE_INFORMATION", "low"), "operational"),
            (("SERVICE_INFORMATION", "high"), "operational"),
            (("SERVICE_DISRUPTION", "low"), "degraded"),
            (("SERVICE_DISRUPTION", "medium"), "degraded"),
            (("SERVICE_DISRUPTION", "high"), "partial_outage"),
            (("SERVICE_OUTAGE", "low"), "major_outage"),
            (("", ""), "degraded"),
            (("", "high"), "partial_outage"),
        ),
        definition=Definition(
            publisher="Google Cloud",
            link="https://cloud.google.com/support/docs/dashboard",
            words="A major incident is marked as Service outage on the status dashboards.",
            read_on=date(2026, 11, 28),
        ),
    ),
    Meaning(
        "service-status.status",
        "AWS publishes levels 0 to 3 and Azure items without saying what they mean: 1 is operational, 2 degraded, 3 "
        "partial_outage, and every item of Azure degraded. Of Slack an outage is major_outage, an incident degraded, a "
        "notice operational. A maintenance counts from its start",
        decide=lambda level: AWS_WORDS[level],
        rows=((1, "operational"), (2, "degraded"), (3, "partial_outage")),
    ),
)


def _components(rows: Sequence[str]) -> tuple[Component, ...]:
    """Return components of lines such as `Voice mode major_outage`."""
    return tuple(Component(*row.rsplit(" ", 1)) for row in rows)


def _worst(readings: Sequence[PageReading], otherwise: PageReading) -> PageReading:
    """Return the first of the worst readings."""
    return max(readings, key=lambda reading: _WORSE.index(reading.status), default=otherwise)


def soon(fallback: Fallback[T], seconds: float = PAGE_S) -> Fallback[T]:
    """Return the fallback with a time limit: one slow page must not delay the others."""

    async def limited(reading: FallbackReader) -> T:
        try:
            with fail_after(seconds):
                return await fallback(reading)
        except TimeoutError:
            raise SourceDown(f"no answer in {seconds:g} s", word="timeout") from None

    return limited


PAGES = (
    *(
        StatusPage(
            slug,
            f"https://{host}",
            via(STATUSPAGES[slug], None, from_openai if slug == "OpenAI" else from_statuspage),
        )
        for slug, host in HOSTS.items()
    ),
    StatusPage("Slack", "https://slack-status.com", via(SLACK_STATUS, None, from_slack)),
    StatusPage("AWS", "https://health.aws.amazon.com/health/status", soon(via(AWS_EVENTS, None, from_aws))),
    StatusPage(
        "Google Cloud", "https://status.cloud.google.com", soon(via(GOOGLE_CLOUD_INCIDENTS, None, from_google_cloud))
    ),
    StatusPage("Azure", "https://azure.status.microsoft/en-us/status", soon(via(AZURE_STATUS, None, from_azure))),
)
STATUS_SOURCES: tuple[Source[Any, Any], ...] = (
    *STATUSPAGES.values(),
    SLACK_STATUS,
    AWS_EVENTS,
    GOOGLE_CLOUD_INCIDENTS,
    AZURE_STATUS,
)

MAJORS = PAGES[:4]  # GitHub, Cloudflare, OpenAI, Anthropic
MAJOR_SOURCES = STATUS_SOURCES[:4]


async def check_pages(ctx: ToolContext, pages: Sequence[StatusPage], section: str) -> list[ServiceItem]:
    """Return the state of each page in order, all read at once; `unknown` where a page does not answer.

    Raises:
        SourceError: none of them answered.
    """
    checks = await gather(*(ctx.attempt(_part(page, section), page.fallback) for page in pages))
    items = [_item(ctx, page, check, section) for page, check in zip(pages, checks, strict=True)]
    if all(item.status == "unknown" for item in items):
        raise next(check for check in checks if isinstance(check, SourceError))
    return items


def _item(ctx: ToolContext, page: StatusPage, check: PageReading | SourceError, section: str) -> ServiceItem:
    if isinstance(check, SourceError):
        return ServiceItem(name=page.name, status="unknown", description=UNREACHABLE, url=page.url, checked_at=None)
    part = _part(page, section)
    checked_at = next((note.fetched_at for note in ctx.notes.used if note.section == part), None)
    return ServiceItem(
        name=page.name, status=check.status, description=check.description, url=page.url, checked_at=checked_at
    )


def _part(page: StatusPage, section: str) -> str:
    return f"{section}.{page.name.replace(' ', '')}"
