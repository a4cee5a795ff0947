"""ThreatFox: the newest indicators of compromise (JSON export without a key, API with one).

https://threatfox.abuse.ch/api/
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from tools.shared.defang import literal
from tools.shared.numbers import positive, within
from tools.shared.optional import optional
from tools.shared.text import NAME, clean, clean_or_none
from tools.shared.times import from_iso
from tools.sources.hosts import ABUSECH
from toolserver.errors import SourceChanged, SourceEmpty, SourceRefused
from toolserver.upstream.source import MIB, Get, Keys, Licence, Post, Source

EXPORT = "https://threatfox.abuse.ch/export/json/recent/"
API = "https://threatfox-api.abuse.ch/api/v1/"
LICENCE = Licence("unclear", "ThreatFox (abuse.ch)", "https://threatfox.abuse.ch/faq/#tos")


class Indicator(NamedTuple):
    """A live dangerous string or a hash: never fetched, shown only defanged."""

    id: int
    value: str
    kind: str
    threat: str
    malware: str | None
    first_seen_at: datetime
    confidence_percent: float | None
    tags: tuple[str, ...]


def request(query: None, keys: Keys) -> Get:
    key = keys.get("ABUSE_CH_AUTH_KEY")
    if key:
        return Post(API, headers={"Auth-Key": key}, json={"query": "get_iocs", "days": 1})
    return Get(EXPORT)


def parse(body: Any, query: None) -> tuple[Indicator, ...]:
    """Every indicator of the export, or of the API's answer."""
    if "error" in body:
        raise SourceRefused(clean(str(body["error"]), 60))
    if "query_status" in body:
        return tuple(_indicator(e["id"], e["ioc"], e["first_seen"], e) for e in _of_api(body))
    entries = ((identity, entry) for identity, listed in body.items() for entry in listed)
    return tuple(_indicator(identity, e["ioc_value"], e["first_seen_utc"], e) for identity, e in entries)


def _of_api(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The indicators of an answer, whose `data` is a sentence when something is wrong."""
    status, data = body["query_status"], body.get("data")
    if status == "ok" and isinstance(data, list):
        return data
    if status == "no_result":
        raise SourceEmpty("no_result")
    if "auth" in str(status):
        raise SourceRefused(clean(str(status), 60))
    raise SourceChanged(f"query_status is {status!r:.40}")


def _indicator(identity: Any, value: str, seen: str, entry: dict[str, Any]) -> Indicator:
    return Indicator(
        id=int(identity),
        value=literal(value),
        kind=clean(entry["ioc_type"], 40),
        threat=clean(entry["threat_type"], 60),
        malware=clean_or_none(entry.get("malware_printable"), NAME),
        first_seen_at=from_iso(seen.removesuffix(" UTC")),
        confidence_percent=optional(_percent, entry.get("confidence_level")),
        tags=tuple(_tags(entry.get("tags"))),
    )


def _percent(value: Any) -> float:
    """None at all (0) says nothing."""
    return within(positive(value), 0, 100)


def _tags(given: object) -> Iterable[str]:
    """From `"a,b"`, a list or null."""
    listed = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    return (tag for value in listed if (tag := clean_or_none(value, 60)))


def newest(indicators: tuple[Indicator, ...]) -> datetime | None:
    return max((indicator.first_seen_at for indicator in indicators), default=None)


INDICATORS = Source(
    "ThreatFox.recent_iocs",
    request,
    parse,
    licence=LICENCE,
    hosts=ABUSECH,
    fresh_s=600,
    keep_s=86400,
    timeout_s=20,
    max_bytes=16 * MIB,
    newest=newest,
    newest_max_s=86400,
    least=5,
    untrusted=True,
)
