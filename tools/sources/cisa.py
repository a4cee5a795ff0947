"""CISA's catalogue of vulnerabilities known to be exploited (JSON, no key, CC0), and its copy on a code host.

https://www.cisa.gov/known-exploited-vulnerabilities-catalog
"""

from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from tools.parsing.optional import optional
from tools.parsing.text import NAME, clean
from tools.sources.hosts import DAY, HOUR, RAW, WEEK
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

CATALOGUE = "https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json"
COPY = "https://raw.githubusercontent.com/cisagov/kev-data/develop/known_exploited_vulnerabilities.json"
LICENCE = Licence(
    "yes", "CISA Known Exploited Vulnerabilities", "https://www.cisa.gov/sites/default/files/licenses/kev/license.txt"
)


class ExploitedVulnerability(NamedTuple):
    """`ransomware` is None in releases that do not say."""

    cve: str
    name: str
    vendor: str
    product: str
    added: date
    due: date | None
    ransomware: bool | None


def parse(body: Any, query: None) -> tuple[ExploitedVulnerability, ...]:
    """Every entry, the last added first: releases differ in their order."""
    listed = body["vulnerabilities"]
    if not isinstance(listed, list):
        raise SourceChanged("vulnerabilities is no list")
    return tuple(sorted(read_rows(listed, _vulnerability), key=lambda v: v.added, reverse=True))


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


def newest(vulnerabilities: tuple[ExploitedVulnerability, ...]) -> datetime | None:
    return datetime.combine(vulnerabilities[0].added, time(), UTC) if vulnerabilities else None


KNOWN_EXPLOITED = Source(
    "CISA.known_exploited",
    (Get(CATALOGUE), Get(COPY)),
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=20,
    max_bytes=6 * MIB,
    conditional=True,
    newest=newest,
    newest_max_s=60 * DAY,
    least=500,
    untrusted=True,
)
