"""GET /api/cyber-threats."""

from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Annotated, Any, Literal, NamedTuple

from anyio import gather
from pydantic import ConfigDict, Field, RootModel

from tools.parsing.defang import defang
from tools.sources.cisa import KNOWN_EXPLOITED, KNOWN_EXPLOITED_COPY, Catalogue
from tools.sources.feodo import COMMAND_SERVERS, CommandServer
from tools.sources.openphish import PHISHING_URLS
from tools.sources.threatfox import INDICATORS, ThreatIndicator
from tools.sources.urlhaus import MALWARE_URLS, MalwareUrl
from toolserver import CardValue, Fallback, Payload, SourceError, ToolContext, iso, tool, up_to, via

EACH = 5
KEV = "https://www.cisa.gov/known-exploited-vulnerabilities-catalog?search_api_fulltext="


class Threat(Payload):
    source: Literal["URLhaus", "ThreatFox", "CISA KEV", "Feodo Tracker", "OpenPhish"] = Field(
        description="Tracker that lists it"
    )
    type: Literal["malware_url", "ioc", "exploited_vulnerability", "c2_server", "phishing_url"] = Field(
        description="Kind of threat, one for each tracker"
    )
    indicator: str = Field(description="The address or file, defanged (hxxp://host[.]example), or a CVE id or hash")
    ioc_type: str | None = Field(
        description="Form of the indicator, such as url, ip:port, cve or sha256_hash; null: not given"
    )
    threat: str | None = Field(description="Malware, attack or vulnerability in the tracker's words; null: not given")
    date: str | None = Field(description="When it was listed: ISO 8601 time, or a date; null: OpenPhish gives none")
    severity_note: str | None = Field(
        description="What the tracker says of state, confidence, tags or due date; null: nothing"
    )
    reference: str | None = Field(description="The tracker's own page; null: OpenPhish has none")


class Threats(RootModel[list[Threat]]):
    """Newest first, undated last."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Dated(NamedTuple):
    """An item and the time by which it is sorted."""

    at: datetime
    item: Threat


@tool(
    path="/api/cyber-threats",
    title="Cyber threats",
    search_hint="malware vulnerabilities CVE exploiting exploited hackers are phishing botnet attacks moment",
    ttl_s=60,
    sources=(MALWARE_URLS, INDICATORS, KNOWN_EXPLOITED, KNOWN_EXPLOITED_COPY, COMMAND_SERVERS, PHISHING_URLS),
    headline=CardValue("0.threat", "", "{0.source}, {0.date}"),
)
async def cyber_threats(ctx: ToolContext, limit: Annotated[int, up_to(25)] = 25) -> Threats:
    """The newest malware URLs, indicators of compromise, exploited vulnerabilities (CISA KEV), botnet command servers
    and phishing pages, defanged. Use it for "what attacks are going on?"; for one address use exposure_lookup.

    Shape: the newest 5 of each feed, at most 25, newest first; phishing URLs have no date and come last. Dangerous
    strings are written `hxxp` and `[.]` and are never links. Feodo Tracker may have nothing to list.
    Source: URLhaus, ThreatFox and Feodo Tracker (abuse.ch), CISA, OpenPhish, refreshed every 5 to 60 minutes.
    """
    parts = await gather(*(ctx.attempt(f"data.{section}", *fallbacks) for section, fallbacks in FEEDS.items()))
    threats = [dated for part in parts if not isinstance(part, SourceError) for dated in part]
    if not threats:
        raise next(part for part in parts if isinstance(part, SourceError))
    newest_first = sorted(threats, key=lambda dated: dated.at, reverse=True)
    return Threats([dated.item for dated in ctx.page(newest_first, limit)])


def from_urlhaus(urls: tuple[MalwareUrl, ...]) -> list[Dated]:
    return [
        Dated(
            url.added_at,
            Threat(
                source="URLhaus",
                type="malware_url",
                indicator=defang(url.url),
                ioc_type="url",
                threat=url.threat,
                date=iso(url.added_at),
                severity_note=_note(url.status, *url.tags),
                reference=url.reference,
            ),
        )
        for url in _newest(urls, lambda url: url.added_at)
    ]


def from_threatfox(indicators: tuple[ThreatIndicator, ...]) -> list[Dated]:
    return [
        Dated(
            ioc.first_seen_at,
            Threat(
                source="ThreatFox",
                type="ioc",
                indicator=defang(ioc.value),
                ioc_type=ioc.kind,
                threat=_note(ioc.malware, ioc.threat),
                date=iso(ioc.first_seen_at),
                severity_note=None if ioc.confidence_percent is None else f"confidence {ioc.confidence_percent:g} %",
                reference=f"https://threatfox.abuse.ch/ioc/{ioc.id}/",
            ),
        )
        for ioc in _newest(indicators, lambda indicator: indicator.first_seen_at)
    ]


def from_cisa(catalogue: Catalogue) -> list[Dated]:
    return [
        Dated(
            datetime.combine(entry.added, time(), UTC),
            Threat(
                source="CISA KEV",
                type="exploited_vulnerability",
                indicator=entry.cve,
                ioc_type="cve",
                threat=entry.name,
                date=entry.added.isoformat(),
                severity_note=_note(
                    f"due {entry.due.isoformat()}" if entry.due else None,
                    "known ransomware use" if entry.ransomware else None,
                ),
                reference=f"{KEV}{entry.cve}",
            ),
        )
        for entry in catalogue.entries[:EACH]
    ]


def from_feodo(servers: tuple[CommandServer, ...]) -> list[Dated]:
    return [
        Dated(
            server.first_seen_at,
            Threat(
                source="Feodo Tracker",
                type="c2_server",
                indicator=defang(f"{server.ip}:{server.port}"),
                ioc_type="ip:port",
                threat=server.malware,
                date=iso(server.first_seen_at),
                severity_note=_note(
                    server.status, f"last online {server.last_online.isoformat()}" if server.last_online else None
                ),
                reference=f"https://feodotracker.abuse.ch/browse/host/{server.ip}/",
            ),
        )
        for server in _newest(servers, lambda server: server.first_seen_at)
    ]


def from_openphish(urls: tuple[str, ...]) -> list[Dated]:
    return [
        Dated(
            datetime.min.replace(tzinfo=UTC),
            Threat(
                source="OpenPhish",
                type="phishing_url",
                indicator=defang(url),
                ioc_type="url",
                threat="phishing",
                date=None,
                severity_note=None,
                reference=None,
            ),
        )
        for url in urls[:EACH]
    ]


FEEDS: dict[str, tuple[Fallback[list[Dated]], ...]] = {
    "urlhaus": (via(MALWARE_URLS, None, from_urlhaus),),
    "threatfox": (via(INDICATORS, None, from_threatfox),),
    "cisa_kev": (via(KNOWN_EXPLOITED, None, from_cisa), via(KNOWN_EXPLOITED_COPY, None, from_cisa)),
    "feodo_tracker": (via(COMMAND_SERVERS, None, from_feodo),),
    "openphish": (via(PHISHING_URLS, None, from_openphish),),
}


def _newest(rows: tuple[Any, ...], at: Callable[[Any], datetime]) -> list[Any]:
    return sorted(rows, key=at, reverse=True)[:EACH]


def _note(*parts: str | None) -> str | None:
    """Join the parts of a note; None if there are none."""
    return ", ".join(part for part in parts if part) or None
