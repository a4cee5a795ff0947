"""Simulate GDACS on the wire: an event list cut at the hundred newest, and the news feed."""

from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from tools.simulated.disasters import DAY, WORDS, SimDisaster, disasters, present_level
from toolserver.world.model import Ask, Reply, World, serves

PAGE = 100
UNITS = {"EQ": "M", "TC": "km/h", "WF": "ha", "DR": "km2"}
HEAD = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#" \
xmlns:gdacs="http://www.gdacs.org" xmlns:georss="http://www.georss.org/georss">
  <channel>
    <title>GDACS RSS information</title>
    <link>http://www.gdacs.org/</link>
    <!--Records number {count}-->
    <pubDate>{now}</pubDate>"""
ITEM = """
    <item>
      <title>{title}</title>
      <description>{title}</description>
      <link>https://www.gdacs.org/report.aspx?eventtype={kind}&amp;eventid={number}</link>
      <pubDate>{began}</pubDate>
      <gdacs:temporary>false</gdacs:temporary>
      <gdacs:iscurrent>{current}</gdacs:iscurrent>
      <gdacs:fromdate>{began}</gdacs:fromdate>
      <gdacs:todate>{ended}</gdacs:todate>
      <guid isPermaLink="false">{kind}{number}</guid>
      <geo:Point>
        <geo:lat>{lat}</geo:lat>
        <geo:long>{lon}</geo:long>
      </geo:Point>
      <georss:point>{lat} {lon}</georss:point>
      <gdacs:eventtype>{kind}</gdacs:eventtype>
      <gdacs:alertlevel>{level}</gdacs:alertlevel>
      <gdacs:episodealertlevel>{present}</gdacs:episodealertlevel>
      <gdacs:eventname>{own_name}</gdacs:eventname>
      <gdacs:eventid>{number}</gdacs:eventid>
      <gdacs:episodeid>1</gdacs:episodeid>
      <gdacs:severity unit="{unit}" value="{severity}">{severity_text}</gdacs:severity>
      <gdacs:iso3>{iso3}</gdacs:iso3>
      <gdacs:country>{country}</gdacs:country>
    </item>"""
TAIL = "\n  </channel>\n</rss>"


def _collection(features: list[dict[str, Any]]) -> Reply:
    return Reply.json({"type": "FeatureCollection", "features": features})


@serves(
    "GDACS.event_list", "www.gdacs.org", "/gdacsapi/api/events/geteventlist/SEARCH", forms={"empty": _collection([])}
)
def search(world: World, ask: Ask) -> Reply:
    return _collection([_feature(world, d) for d in _asked_for(world, ask)])


@search.form("drift")
def by_class(world: World, ask: Ask) -> Reply:
    """Answer as the sister path does: each event several times, once for each class of geometry."""
    features: list[dict[str, Any]] = []
    for disaster in _asked_for(world, ask):
        centre = _feature(world, disaster)
        circle = {"type": "Polygon", "coordinates": [[[disaster.lon, disaster.lat]] * 4]}
        features += [
            _of_class(centre, "Poly_Circle", circle),
            centre,
            _of_class(centre, "Point_Affected", centre["geometry"]),
        ]
    return _collection(features)


@serves("GDACS.rss", "www.gdacs.org", "/xml/rss.xml")
def feed(world: World, ask: Ask) -> Reply:
    listed = [d for d in disasters(world, world.now - 4 * DAY) if d.level != "Green" or d.kind != "EQ"]
    head = HEAD.format(count=len(listed), now=_rfc822(world.now))
    text = "\ufeff" + head + "".join(_item(world, d) for d in listed) + TAIL
    return Reply.text(text, content_type="application/xml")


@feed.form("empty")
def no_item(world: World, ask: Ask) -> Reply:
    return Reply.text("\ufeff" + HEAD.format(count=0, now=_rfc822(world.now)) + TAIL, content_type="application/xml")


def name(disaster: SimDisaster) -> str:
    """Return GDACS's name for a disaster."""
    word = WORDS[disaster.kind]
    if disaster.kind == "VO":
        return f"{word}  {disaster.own_name}"  # two blanks, as upstream
    return f"{word} {disaster.own_name}" if disaster.own_name else f"{word} in {disaster.country}"


def current(world: World, disaster: SimDisaster) -> bool:
    return disaster.ended >= world.now - DAY


def _asked_for(world: World, ask: Ask) -> list[SimDisaster]:
    """Return the hundred newest of the kinds and colours, between the days. `limit` is ignored, as upstream."""
    params = ask.params
    since = datetime.fromisoformat(params["fromdate"]).replace(tzinfo=UTC).timestamp()
    until = datetime.fromisoformat(params["todate"]).replace(tzinfo=UTC).timestamp() + DAY
    kinds, levels = params["eventlist"].split(";"), params["alertlevel"].split(";")
    matching = [d for d in disasters(world, since) if d.kind in kinds and d.level in levels and d.began < until]
    return matching[:PAGE]


def _feature(world: World, disaster: SimDisaster) -> dict[str, Any]:
    kind, number = disaster.kind, disaster.number
    query = f"eventid={number}&episodeid=1&eventtype={kind}"
    icon = f"https://www.gdacs.org/images/gdacs_icons/maps/{disaster.level}/{kind}.png"
    score = {"Green": 1, "Orange": 2, "Red": 3}[disaster.level]
    return {
        "type": "Feature",
        "bbox": [disaster.lon, disaster.lat, disaster.lon, disaster.lat],
        "geometry": {"type": "Point", "coordinates": [disaster.lon, disaster.lat]},
        "properties": {
            "eventtype": kind,
            "eventid": number,
            "episodeid": 1,
            "eventname": disaster.own_name,
            "glide": "",
            "name": name(disaster),
            "description": name(disaster),
            "htmldescription": f"{disaster.level} {name(disaster)}",
            "icon": icon,
            "iconoverall": icon,
            "url": {
                "geometry": f"https://www.gdacs.org/gdacsapi/api/polygons/getgeometry?{query}",
                "report": f"https://www.gdacs.org/report.aspx?{query}",
                "details": f"https://www.gdacs.org/gdacsapi/api/events/geteventdata?{query}",
            },
            "alertlevel": disaster.level,
            "alertscore": score,
            "episodealertlevel": present_level(disaster),
            "episodealertscore": score - 0.5,
            "istemporary": "false",
            "iscurrent": "true" if current(world, disaster) else "false",
            "country": disaster.country,
            "fromdate": _plain(disaster.began),
            "todate": _plain(min(disaster.ended, world.now)),
            "datemodified": _plain(min(disaster.began + 1200, world.now)),
            "iso3": disaster.iso3,
            "source": "SIM",
            "sourceid": "",
            "polygonlabel": "Centroid",
            "Class": "Point_Centroid",
            "affectedcountries": [{"iso2": "", "iso3": disaster.iso3, "countryname": disaster.country}],
            "severitydata": {
                "severity": disaster.severity,
                "severitytext": _severity(disaster),
                "severityunit": UNITS.get(kind, ""),
            },
        },
    }


def _of_class(feature: dict[str, Any], name: str, geometry: dict[str, Any]) -> dict[str, Any]:
    return feature | {"geometry": geometry, "properties": feature["properties"] | {"Class": name, "iconoverall": None}}


def _severity(disaster: SimDisaster) -> str:
    unit = UNITS.get(disaster.kind)
    if disaster.kind == "EQ":
        return f"Magnitude {disaster.severity}M, Depth:10km"
    if disaster.kind == "FL":
        return "Magnitude 0 "  # of every flood, with the blank
    return f"{WORDS[disaster.kind]} of {disaster.severity:g} {unit}" if unit else ""


def _item(world: World, disaster: SimDisaster) -> str:
    return ITEM.format(
        title=escape(f"{disaster.level} alert: {name(disaster)}."),
        kind=disaster.kind,
        number=disaster.number,
        began=_rfc822(disaster.began),
        ended=_rfc822(min(disaster.ended, world.now)),
        current="true" if current(world, disaster) else "false",
        lat=disaster.lat,
        lon=disaster.lon,
        level=disaster.level,
        present=present_level(disaster),
        own_name=disaster.own_name,
        unit=UNITS.get(disaster.kind, ""),
        severity=disaster.severity,
        severity_text=_severity(disaster),
        iso3=disaster.iso3,
        country=escape(disaster.country),
    )


def _plain(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _rfc822(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
