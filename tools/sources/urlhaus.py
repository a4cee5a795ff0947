"""Read the newest URLs that serve malware from URLhaus (CSV export without a key, API with one).

https://urlhaus.abuse.ch/api/
"""

import csv
from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.defang import literal
from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, web_url
from tools.sources.hosts import ABUSECH, DAY
from toolserver import Get, Keys, Licence, Source, SourceChanged, SourceEmpty, SourceRefused, read_rows

EXPORT = "https://urlhaus.abuse.ch/downloads/csv_recent/"
API = "https://urlhaus-api.abuse.ch/v1/urls/recent/limit/25/"
READ_BYTES = 256 * 1024
LICENCE = Licence("unclear", "URLhaus (abuse.ch)", "https://urlhaus.abuse.ch/api/#tos")


class MalwareUrl(NamedTuple):
    """A live dangerous string: never fetched, shown only defanged."""

    url: str
    added_at: datetime
    status: str | None
    threat: str | None
    tags: tuple[str, ...]
    reference: str | None


def request(query: None, keys: Keys) -> Get:
    key = keys.get("ABUSE_CH_AUTH_KEY")
    return Get(API, headers={"Auth-Key": key}) if key else Get(EXPORT, decode="text")


def parse(body: Any, query: None) -> tuple[MalwareUrl, ...]:
    """Return every row of the export, or every URL of the API's answer, newest first."""
    return _from_csv(body) if isinstance(body, str) else _from_api(body)


def _from_csv(text: str) -> tuple[MalwareUrl, ...]:
    """Read the head of a long list, whose last line may be cut; a short list that ends inside a line is incomplete.

    Lines that begin with `#` are comments; the last of them names the columns.
    """
    if not text.endswith("\n") and len(text.encode()) < READ_BYTES - 4:
        raise SourceChanged("the last line is cut")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    head = [line for line in lines if line.startswith("#")]
    columns = next((line.lstrip("# ").split(",") for line in reversed(head) if "," in line), [])
    if "dateadded" not in columns or "url" not in columns:
        raise SourceChanged("no column names")
    rows = list(csv.DictReader([line for line in lines if line and not line.startswith("#")], columns))
    return read_rows(rows, _from_row)


def _from_row(row: dict[str, Any]) -> MalwareUrl:
    tags = row.get("tags") or ""
    return MalwareUrl(
        url=literal(row["url"]),
        added_at=from_iso(row["dateadded"]),
        status=clean_or_none(row.get("url_status"), 20),
        threat=clean_or_none(row.get("threat"), NAME),
        tags=tuple(clean(tag, 60) for tag in tags.split(",") if tag and tag != "None"),
        reference=own_page(row.get("urlhaus_link")),
    )


def _from_api(body: Any) -> tuple[MalwareUrl, ...]:
    if "error" in body:
        raise SourceRefused(clean(str(body["error"]), 60))
    status = body["query_status"]
    if status != "ok":
        raise SourceEmpty(status) if status == "no_results" else SourceChanged(f"query_status is {status!r:.40}")
    return read_rows(body["urls"], _from_entry)


def _from_entry(entry: dict[str, Any]) -> MalwareUrl:
    return MalwareUrl(
        url=literal(entry["url"]),
        added_at=from_iso(entry["date_added"].removesuffix(" UTC")),
        status=clean_or_none(entry.get("url_status"), 20),
        threat=clean_or_none(entry.get("threat"), NAME),
        tags=tuple(tag for value in entry.get("tags") or () if (tag := clean_or_none(value, 60))),
        reference=own_page(entry.get("urlhaus_reference")),
    )


def own_page(url: object) -> str | None:
    """Return the link if it leads to URLhaus itself, otherwise None."""
    link = web_url(url)
    return link if link and link.startswith("https://urlhaus.abuse.ch/") else None


def newest(urls: tuple[MalwareUrl, ...]) -> datetime | None:
    return max((url.added_at for url in urls), default=None)


MALWARE_URLS = Source(
    "URLhaus.recent_urls",
    request,
    parse,
    licence=LICENCE,
    hosts=ABUSECH,
    fresh_s=300,
    timeout_s=15,
    max_bytes=READ_BYTES,
    prefix=True,
    newest=newest,
    newest_max_s=DAY,
    least=5,
    untrusted=True,
)
