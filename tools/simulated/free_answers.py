"""Compute what free endpoints made of several providers must contain when all of the simulated providers answer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated import (
    alternative_me,
    cisa,
    coinbase,
    eonet,
    feodo,
    hackernews,
    internetdb,
    openphish,
    polymarket,
    statuspages,
    threatfox,
    urlhaus,
    usgs,
)
from tools.simulated.disasters import DAY, disasters, present_level
from toolserver.world.model import ROUTES, World, expects

EACH = 5  # of every feed
MAJORS = 4  # the services that come first
TYPES = {
    "EQ": "earthquake",
    "TC": "tropical_cyclone",
    "FL": "flood",
    "VO": "volcano",
    "WF": "wildfire",
    "DR": "drought",
}
OF_EONET = {"severeStorms": "storm", "volcanoes": "volcano", "floods": "flood", "wildfires": "wildfire"}
PROVIDERS = (alternative_me, coinbase, hackernews, polymarket, statuspages, usgs)
"""The modules whose expectations the briefing's is made of."""


@expects("briefing")
def briefing(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    def of(endpoint: str) -> Any:
        return ROUTES.expectations[endpoint](world, {})

    bitcoin, quakes = of("btc-price"), of("earthquake")
    latest = {name: quakes["earthquakes"][0][name] for name in ("magnitude", "location")}
    sections = {
        "crypto": {name: bitcoin[name] for name in ("price_usd", "change_24h_percent", "volume_24h_usd")},
        "fear_greed": {name: of("fear-greed")[name] for name in ("value", "label")},
        "earthquakes": {"count": quakes["count"], "latest": latest},
        "predictions": of("predictions")[:EACH],
        "news": of("tech-news")[:EACH],
        "services": of("service-status")[:MAJORS],
    }
    return {"sections": sections}


@expects("disaster-alerts")
def disaster_alerts(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return red, orange, no colour, green; the newest first within each."""
    rows = [*_of_gdacs(world), *_of_eonet(world)]
    order = ("red", "orange", None, "green")
    rows.sort(key=lambda row: (order.index(row["present_alert_level"]), -row["began"]))
    return [{name: value for name, value in row.items() if name != "began"} for row in rows[:20]]


def _of_gdacs(world: World) -> list[dict[str, Any]]:
    """Return the severe ones of thirty days and the green ones of five, unless they ended over two days ago."""
    today = world.now - world.now % DAY
    grave = [d for d in disasters(world, today - 30 * DAY) if d.level != "Green"][:100]
    green = [d for d in disasters(world, today - 5 * DAY) if d.level == "Green" and d.kind != "EQ"][:100]
    return [
        {
            "id": f"gdacs:{d.kind}{d.number}",
            "type": TYPES[d.kind],
            "alert_level": d.level.lower(),
            "present_alert_level": present_level(d).lower(),
            "began": d.began,
        }
        for d in (*grave, *green)
        if d.ended >= world.now - 2 * DAY
    ]


def _of_eonet(world: World) -> list[dict[str, Any]]:
    """Return disasters that GDACS does not list; fires from a thousand acres."""
    rows = []
    for event in eonet.only_here(world):
        first, category = event["geometry"][0], event["categories"][0]["id"]
        if category != "wildfires" or first["magnitudeValue"] >= eonet.LARGE_ACRES:
            began = datetime.fromisoformat(first["date"]).timestamp()
            identity = f"eonet:{event['id']}"
            colours = {"alert_level": None, "present_alert_level": None}
            rows.append({"id": identity, "type": OF_EONET[category], "began": began} | colours)
    return rows


@expects("cyber-threats")
def cyber_threats(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the newest of each feed, newest first, the undated ones last."""
    urls = [("URLhaus", u.at, _harmless(u.url)) for u in urlhaus.urls(world, world.now - urlhaus.KEPT_S)[:EACH]]
    indicators = threatfox.indicators(world, world.now - 2 * DAY)[:EACH]
    iocs = [("ThreatFox", i.at, _harmless(i.value)) for i in indicators]
    entries = cisa.catalogue(world)[:EACH]
    flaws = [("CISA KEV", _at(entry["dateAdded"]), entry["cveID"]) for entry in entries]
    servers = [feodo.server(world, index) for index in range(feodo.SERVERS)]
    hosts = [("Feodo Tracker", _at(s["first_seen"]), _harmless(f"{s['ip_address']}:{s['port']}")) for s in servers]
    pages = [("OpenPhish", -1.0, _harmless(url)) for url in openphish.phishing_urls(world)[:EACH]]
    rows = sorted([*urls, *iocs, *flaws, *hosts, *pages], key=lambda row: -int(row[1]))
    return [{"source": source, "indicator": indicator} for source, _, indicator in rows]


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _harmless(text: str) -> str:
    """Return a defanged URL: brackets go around dots of the host only, which ends at the first slash."""
    scheme, mark, rest = text.rpartition("://") if "://" in text else ("", "", text)
    host, slash, path = rest.partition("/")
    return (scheme.replace("http", "hxxp") + mark + host.replace(".", "[.]") + slash + path).replace("@", "[@]")


@expects("exposure-lookup")
def exposure_lookup(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    first = int(world.now // 3600) * 6 % len(internetdb.KNOWN)
    addresses = [params["ip"]] if "ip" in params else list(internetdb.KNOWN)[first : first + 6]
    return {"mode": "single" if "ip" in params else "curated", "results": [_exposure(world, ip) for ip in addresses]}


def _exposure(world: World, ip: str) -> dict[str, Any]:
    record = internetdb.record(world, ip)
    if record is None:
        return {"ip": ip, "indexed": False, "ports": [], "cves": []}
    return {
        "ip": ip,
        "indexed": True,
        "ports": record["ports"],
        "cves": record["vulns"],
        "hostnames": record["hostnames"],
    }
