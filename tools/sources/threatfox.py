"""Read the newest indicators of compromise from ThreatFox (JSON export without a key, API with one).

https://threatfox.abuse.ch/api/
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.defang import literal
from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, optional, positive, within
from tools.sources.hosts import ABUSECH, DAY, MINUTE
from toolserver import MIB, Get, Keys, Licence, Post, Source, SourceChanged, SourceEmpty, SourceRefused, read_rows

EXPORT = "https://threatfox.abuse.ch/export/json/recent/"
API = "https://threatfox-api.abuse.ch/api/v1/"
LICENCE = Licence("unclear", "ThreatFox (abuse.ch)", "https://threatfox.abuse.ch/faq/#tos")


class ThreatIndicator(NamedTuple):
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


def parse(body: Any, query: None) -> tuple[ThreatIndicator, ...]:
    """Return every indicator of the export, or of the API's answer."""
    if "error" in body:
        raise SourceRefused(clean(str(body["error"]), 60))
    if "query_status" in body:
        return read_rows(_of_api(body), lambda e: _indicator(e["id"], e["ioc"], e["first_seen"], e))
    listed = read_rows(body.items(), lambda pair: [(pair[0], entry) for entry in pair[1]])
    return read_rows((pair for pairs in listed for pair in pairs), lambda pair: _exported(*pair))


def _exported(identity: str, entry: dict[str, Any]) -> ThreatIndicator:
    return _indicator(identity, entry["ioc_value"], entry["first_seen_utc"], entry)


def _of_api(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the indicators of an API answer, whose `data` is a sentence after an error."""
    status, data = body["query_status"], body.get("data")
    if status == "ok" and isinstance(data, list):
        return data
    if status == "no_result":
        raise SourceEmpty("no_result")
    if "auth" in str(status):
        raise SourceRefused(clean(str(status), 60))
    raise SourceChanged(f"query_status is {status!r:.40}")


def _indicator(identity: Any, value: str, seen: str, entry: dict[str, Any]) -> ThreatIndicator:
    return ThreatIndicator(
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
    """Return a confidence above 0. Raises ValueError for 0, which carries no information."""
    return within(positive(value), 0, 100)


def _tags(tags: object) -> Iterable[str]:
    """Return the tags of `"a,b"`, a list or null."""
    listed = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else []
    return (tag for value in listed if (tag := clean_or_none(value, 60)))


def newest(indicators: tuple[ThreatIndicator, ...]) -> datetime | None:
    return max((indicator.first_seen_at for indicator in indicators), default=None)


INDICATORS = Source(
    "ThreatFox.recent_iocs",
    request,
    parse,
    licence=LICENCE,
    hosts=ABUSECH,
    fresh_s=10 * MINUTE,
    timeout_s=20,
    max_bytes=16 * MIB,
    newest=newest,
    newest_max_s=DAY,
    least=5,
    size_varies="one reporter may add thousands of indicators at once",
    untrusted=True,
)
