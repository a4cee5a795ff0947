"""Read CISA's catalogue of vulnerabilities known to be exploited (JSON, no key, CC0), and its copy on a code host.

CISA refuses data centres. The copy can be of any age, so it is a source of its own, and both
are judged by the newest entry or by the date of the release, whichever is older.

https://www.cisa.gov/known-exploited-vulnerabilities-catalog
"""

from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, from_iso, optional
from tools.sources.hosts import DAY, HOUR, RAW, WEEK
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

CATALOGUE = "https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json"
COPY = "https://raw.githubusercontent.com/cisagov/kev-data/develop/known_exploited_vulnerabilities.json"
LICENCE = Licence(
    "yes", "CISA Known Exploited Vulnerabilities", "https://www.cisa.gov/sites/default/files/licenses/kev/license.txt"
)


class ExploitedVulnerability(NamedTuple):
    """An exploited vulnerability. `ransomware` is None in releases without that field."""

    cve: str
    name: str
    vendor: str
    product: str
    added: date
    due: date | None
    ransomware: bool | None


class Catalogue(NamedTuple):
    """The entries, the last added first, and the time of the release, which some copies lack."""

    entries: tuple[ExploitedVulnerability, ...]
    released_at: datetime | None


def parse(body: Any, query: None) -> Catalogue:
    """Return every entry, sorted here: releases differ in their order."""
    listed = body["vulnerabilities"]
    if not isinstance(listed, list):
        raise SourceChanged("vulnerabilities is not a list")
    entries = sorted(read_rows(listed, _vulnerability), key=lambda v: v.added, reverse=True)
    return Catalogue(tuple(entries), optional(from_iso, body.get("dateReleased")))


def _vulnerability(entry: dict[str, Any]) -> ExploitedVulnerability:
    cve = clean(entry["cveID"], 30)
    if not cve.startswith("CVE-"):
        raise SourceChanged(f"cveID is {cve!r}")
    ransomware = entry.get("knownRansomwareCampaignUse")
    return ExploitedVulnerability(
        cve=cve,
        name=clean(entry["vulnerabilityName"]),
        vendor=clean(entry["vendorProject"], NAME),
        product=clean(entry["product"], NAME),
        added=date.fromisoformat(entry["dateAdded"]),
        due=optional(date.fromisoformat, entry.get("dueDate")),
        ransomware=None if ransomware is None else ransomware == "Known",
    )


def newest(catalogue: Catalogue) -> datetime | None:
    return datetime.combine(catalogue.entries[0].added, time(), UTC) if catalogue.entries else None


def dated(catalogue: Catalogue) -> datetime | None:
    """Return the date of the newest entry or of the release, whichever is older."""
    return min((at for at in (newest(catalogue), catalogue.released_at) if at), default=None)


KNOWN_EXPLOITED = Source(
    "CISA.known_exploited",
    Get(CATALOGUE),
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=20,
    max_bytes=6 * MIB,
    conditional=True,
    newest=newest,
    stamp=dated,
    newest_max_s=60 * DAY,
    least=500,
    untrusted=True,
)
KNOWN_EXPLOITED_COPY = replace(KNOWN_EXPLOITED, name="CISA.known_exploited_copy", request=Get(COPY))
