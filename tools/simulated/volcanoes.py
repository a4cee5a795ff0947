"""Simulate the restless volcanoes as the Smithsonian and USGS report them on the wire."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from toolserver.world.model import Ask, Reply, World, expects, serves

WEEK = 7 * 86400.0
PUBLISHED_S = 11 * 3600.0  # after midnight of Thursday, the weekday of the epoch
HEAD = """<?xml version="1.0" encoding="ISO-8859-1"?>
<rss version="2.0"
      xmlns:georss="http://www.georss.org/georss"
      xmlns:atom="https://www.w3.org/2005/Atom">
	<channel>
		<title>Smithsonian / USGS Weekly Volcanic Activity Report</title>
		<link>https://volcano.si.edu/reports_weekly.cfm</link>
		<language>en-us</language>
		<pubDate>{published}</pubDate>
"""
ITEM = """
<item>
<title>{name} ({country}) - Report for {period} - {category}</title>
<description>
&lt;p&gt;{text}&lt;/p&gt;
&lt;p&gt;Source: Observatory of {country}&lt;/p&gt;
</description>
<link>https://volcano.si.edu/reports_weekly.cfm</link>
<guid isPermaLink="true">https://volcano.si.edu/reports_weekly.cfm#vn_{vnum}</guid>
<pubDate>{published}</pubDate>
<georss:point>{lat:.4f} {lon:.4f}</georss:point>
</item>
"""


class SimVolcano(NamedTuple):
    name: str
    country: str
    vnum: str
    lat: float
    lon: float


VOLCANOES = [
    SimVolcano("Ambrym", "Vanuatu", "257040", -16.25, 168.12),
    SimVolcano("Etna", "Italy", "211060", 37.748, 14.999),
    SimVolcano("Fuego", "Guatemala", "342090", 14.473, -90.88),
    SimVolcano("Great Sitkin", "United States", "311120", 52.076, -176.13),
    SimVolcano("Kilauea", "United States", "332010", 19.421, -155.287),
    SimVolcano("Merapi", "Indonesia", "263250", -7.54, 110.446),
    SimVolcano("Nevados de Chillan", "Chile", "357070", -36.868, -71.378),
    SimVolcano("Popocatepetl", "Mexico", "341090", 19.023, -98.622),
    SimVolcano("Sabancaya", "Peru", "354006", -15.787, -71.857),
    SimVolcano("Sangay", "Ecuador", "352090", -2.005, -78.341),
    SimVolcano("Semeru", "Indonesia", "263300", -8.108, 112.922),
    SimVolcano("Stromboli", "Italy", "211040", 38.789, 15.213),
]
RAISED = [("Great Sitkin", "311120"), ("Kilauea", "332010"), ("Shishaldin", "311360")]  # the last has no weekly report
CODES = [("YELLOW", "ADVISORY"), ("ORANGE", "WATCH"), ("RED", "WARNING")]


@serves("SmithsonianGVP.weekly_report", "volcano.si.edu", "/news/WeeklyVolcanoRSS.xml")
def weekly_report(world: World, ask: Ask) -> Reply:
    return _report(world, VOLCANOES)


@weekly_report.form("empty")
def no_report(world: World, ask: Ask) -> Reply:
    return _report(world, [])


@weekly_report.form("drift")
def other_titles(world: World, ask: Ask) -> Reply:
    """Return titles without a category."""
    reply = _report(world, VOLCANOES)
    text = reply.body.decode("iso-8859-1")
    for category in ("New Eruptive Activity", "Continuing Eruptive Activity"):
        text = text.replace(f" - {category}</title>", "</title>")
    return Reply(text.encode("iso-8859-1"), content_type=reply.content_type, last_modified=reply.last_modified)


@serves(
    "USGS.elevated_volcanoes",
    "volcanoes.usgs.gov",
    "/hans-public/api/volcano/getElevatedVolcanoes",
    forms={"empty": Reply.json([])},
)
def elevated(world: World, ask: Ask) -> Reply:
    return Reply.json([_elevated(world, name, vnum) for name, vnum in RAISED])


@elevated.form("drift")
def numeric(world: World, ask: Ask) -> Reply:
    """Return the volcano's number as a number, the time as text."""
    raised = [_elevated(world, name, vnum) for name, vnum in RAISED]
    return Reply.json([v | {"vnum": int(v["vnum"]), "sent_unixtime": f"{v['sent_unixtime']}"} for v in raised])


def published_at(world: World) -> float:
    """Return the time of publication: Thursday before noon, UTC."""
    return (world.now - PUBLISHED_S) // WEEK * WEEK + PUBLISHED_S


def _report(world: World, volcanoes: list[SimVolcano]) -> Reply:
    at = published_at(world)
    published = datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    items = "".join(_item(world, volcano, at, published) for volcano in volcanoes)
    text = HEAD.format(published=published) + items + "\n	</channel>\n</rss>\n"
    return Reply(text.encode("iso-8859-1"), content_type="text/xml", last_modified=at)


def _item(world: World, volcano: SimVolcano, at: float, published: str) -> str:
    first, last = (datetime.fromtimestamp(at - days * 86400, UTC) for days in (8, 2))
    week = f"{volcano.name}{at:.0f}"
    plumes = int(world.between("volcano.plumes", week, 1, 40))
    text = (
        f"The Servicio Nacional de Geología reported {plumes} ash plumes at {volcano.name}. The Alert Level remained. "
    )
    return ITEM.format(
        name=escape(volcano.name),
        country=volcano.country,
        vnum=volcano.vnum,
        period=f"{first.day} {first:%B}-{last.day} {last:%B %Y}",
        category=world.pick("volcano.category", week, ["New Eruptive Activity", "Continuing Eruptive Activity"]),
        text=text * 5,
        published=published,
        lat=volcano.lat,
        lon=volcano.lon,
    )


def _elevated(world: World, name: str, vnum: str) -> dict[str, Any]:
    sent = int(world.now // 86400) * 86400 - 15000
    color, alert = world.pick("volcano.code", f"{vnum}{sent}", CODES)
    time = datetime.fromtimestamp(sent, UTC)
    notice = f"DOI-USGS-AVO-{time:%Y-%m-%dT%H:%M:%S}+00:00"
    return {
        "obs_fullname": "Alaska Volcano Observatory",
        "obs_abbr": "avo",
        "volcano_name": name,
        "vnum": vnum,
        "notice_type_cd": "DU",
        "notice_identifier": notice,
        "sent_utc": f"{time:%Y-%m-%d %H:%M:%S}",
        "sent_unixtime": sent,
        "color_code": color,
        "alert_level": alert,
        "notice_url": f"https://volcanoes.usgs.gov/hans-public/notice/{notice}",
        "notice_data": f"https://volcanoes.usgs.gov/hans-public/api/notice/getNotice/{notice}",
    }


@expects("volcanoes")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the volcanoes that `/api/volcanoes` must list at this instant when the Smithsonian and USGS answer."""
    levels = {vnum: _elevated(world, name, vnum) for name, vnum in RAISED}
    listed = [{"name": v.name, "country": v.country, "vnum": v.vnum} for v in VOLCANOES]
    reported = {v.vnum for v in VOLCANOES}
    listed += [{"name": n, "country": "United States", "vnum": vnum} for n, vnum in RAISED if vnum not in reported]
    return [t | {"us_alert_level": levels[t["vnum"]]["alert_level"] if t["vnum"] in levels else None} for t in listed]
