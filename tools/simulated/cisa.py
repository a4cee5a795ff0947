"""Simulate CISA's catalogue on the wire, at its own address and as a copy: CVE ids of the year 2099."""

from datetime import UTC, datetime, timedelta
from typing import Any

from toolserver.world.model import Ask, Reply, World, serves

ENTRIES = 1400
EVERY_S = 43200.0  # two new entries a day
PRODUCTS = [("Acme", "Gateway"), ("Initech", "Printer Server"), ("Globex", "Mail"), ("Hooli", "Phone OS")]
FLAWS = ["Command Injection", "Use-After-Free", "Path Traversal", "Deserialization of Untrusted Data"]


def catalogue(world: World) -> list[dict[str, Any]]:
    """Return all entries, the last added first."""
    last = int(world.now // EVERY_S)
    return [_entry(world, index) for index in range(last, last - ENTRIES, -1)]


def _entry(world: World, index: int) -> dict[str, Any]:
    added = datetime.fromtimestamp(index * EVERY_S, UTC).date()
    vendor, product = world.pick("cisa.product", index, PRODUCTS)
    flaw = world.pick("cisa.flaw", index, FLAWS)
    return {
        "cveID": f"CVE-2099-{10000 + index % 80000}",
        "vendorProject": vendor,
        "product": product,
        "vulnerabilityName": f"{vendor} {product} {flaw} Vulnerability",
        "dateAdded": added.isoformat(),
        "shortDescription": f"{vendor} {product} contains a flaw.",
        "requiredAction": "Apply mitigations per vendor instructions.",
        "dueDate": (added + timedelta(days=21)).isoformat(),
        "knownRansomwareCampaignUse": world.pick("cisa.ransomware", index, ["Unknown", "Unknown", "Known"]),
        "notes": f"https://nvd.nist.gov/vuln/detail/CVE-2099-{10000 + index % 80000}",
        "cwes": ["CWE-78"],
    }


def _reply(world: World, entries: list[dict[str, Any]]) -> Reply:
    released = datetime.fromtimestamp(world.now // EVERY_S * EVERY_S, UTC)
    body = {
        "title": "CISA Catalog of Known Exploited Vulnerabilities",
        "catalogVersion": released.strftime("%Y.%m.%d"),
        "dateReleased": released.strftime("%Y-%m-%dT%H:%M:%S.") + "9796Z",
        "count": len(entries),
        "vulnerabilities": entries,
    }
    return Reply.json(body, last_modified=released.timestamp())


def whole(world: World, ask: Ask) -> Reply:
    return _reply(world, catalogue(world))


def of_2023(world: World, ask: Ask) -> Reply:
    """Return the form of 2023: oldest first, without ransomware and CWE members."""
    later = ("knownRansomwareCampaignUse", "cwes")
    old = [{k: v for k, v in entry.items() if k not in later} for entry in reversed(catalogue(world))]
    return _reply(world, old)


def none(world: World, ask: Ask) -> Reply:
    return _reply(world, [])


BLOCKED = "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1></BODY></HTML>"
for _name, _host, _path in (
    ("CISA.known_exploited", "www.cisa.gov", "/sites/default/files/feeds/known_exploited_vulnerabilities.json"),
    (
        "CISA.known_exploited_copy",
        "raw.githubusercontent.com",
        "/cisagov/kev-data/develop/known_exploited_vulnerabilities.json",
    ),
):
    # `geo` is what data centres get
    _route = serves(_name, _host, _path, forms={"geo": Reply.text(BLOCKED, 403, "text/html")})(whole)
    _route.form("drift")(of_2023)
    _route.form("empty")(none)
