"""Read disasters with a colour for the help they may need from GDACS (GeoJSON and RSS, no key).

https://www.gdacs.org/gdacsapi/swagger/index.html
"""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from tools.parsing.fields import (
    clean,
    clean_or_none,
    from_iso,
    from_rfc822,
    number,
    optional,
    positive,
    web_url,
    within,
)
from tools.parsing.xml import rss_items
from tools.sources.hosts import GDACS, MINUTE, WEEK
from toolserver import MIB, Get, Keys, Licence, Proof, Source, SourceChanged, SourceEmpty, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SEARCH = "https://www.gdacs.org/gdacsapi/api/events/geteventlist/SEARCH"
# The guide to the API (2025) calls it free with this credit; the terms have disclaimers only, and the notice of the
# Commission on reuse covers only its own content.
LICENCE = Licence(
    "unclear", "Global Disaster Alert and Coordination System, GDACS", "https://www.gdacs.org/About/termofuse.aspx"
)

Level = Literal["green", "orange", "red"]  # spelled as in the tool: typing treats equal literals as the same


class EventQuery(NamedTuple):
    """Kinds and colours, separated by `;`, from `since` to `until`. The answer has at most the 100 newest."""

    kinds: str
    levels: str
    since: date
    until: date


class Disaster(NamedTuple):
    """One event. `kind` is GDACS's code (EQ TC FL VO WF DR TS).

    `level` is the colour of the worst episode so far, `present` of the present one. None: unknown, or not published.
    """

    kind: str
    id: int
    name: str
    level: Level | None
    country: str | None
    severity: str | None
    started_at: datetime
    ended_at: datetime | None
    current: bool | None
    lat: float | None
    lon: float | None
    url: str | None
    present: Level | None = None


def request(query: EventQuery, keys: Keys) -> Get:
    return Get(
        SEARCH,
        params={
            "eventlist": query.kinds,
            "alertlevel": query.levels,
            "fromdate": query.since.isoformat(),
            "todate": query.until.isoformat(),
        },
    )


def parse(body: Any, query: EventQuery) -> tuple[Disaster, ...]:
    """Return every event once, at its centre: the list may repeat an event for each class of geometry."""
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    return _once(read_rows(body["features"], _of_feature))


def _of_feature(feature: dict[str, Any]) -> Disaster | None:
    is_centre = feature["properties"].get("Class", "Point_Centroid") == "Point_Centroid"
    return _consistent(_disaster(feature)) if is_centre else None


def _disaster(feature: dict[str, Any]) -> Disaster:
    properties = feature["properties"]
    lon, lat = _position(feature.get("geometry"))
    severity = properties.get("severitydata") or {}
    urls = properties.get("url") or {}
    return Disaster(
        kind=clean(properties["eventtype"], 10),
        id=int(positive(properties["eventid"])),
        name=clean(properties["name"] or properties.get("description") or properties["eventname"]),
        level=_level(properties["alertlevel"]),
        country=clean_or_none(properties.get("country")),
        severity=_severity(severity.get("severitytext")),
        started_at=from_iso(properties["fromdate"]),
        ended_at=optional(from_iso, properties.get("todate")),
        current=_flag(properties.get("iscurrent")),
        lat=lat,
        lon=lon,
        url=web_url(urls.get("report")),
        present=_level(properties.get("episodealertlevel")),
    )


def _severity(severity: Any) -> str | None:
    """Return the description of an event's size, without the meaningless "Magnitude 0" of floods."""
    text = clean_or_none(severity)
    return None if text and _NO_MAGNITUDE.fullmatch(text) else text


def _position(geometry: Any) -> tuple[float | None, float | None]:
    """Return longitude and latitude of a point."""
    if not geometry or geometry.get("type") != "Point":
        return None, None
    lon, lat = geometry["coordinates"][:2]
    return within(number(lon), -360, 360), within(number(lat), -90, 90)


def _level(colour: object) -> Level | None:
    lower = str(colour).lower()
    return cast("Level", lower) if lower in get_args(Level) else None


def _flag(flag: object) -> bool | None:
    """Read a flag, which is the word "true" or "false"."""
    return {"true": True, "false": False}.get(str(flag).lower())


def _consistent(disaster: Disaster) -> Disaster:
    """Return the disaster. Raises SourceChanged when its report has another event's number."""
    named = re.search(r"eventid=(\d+)", disaster.url or "")
    if named and int(named[1]) != disaster.id:
        raise SourceChanged(f"the report of {disaster.id} belongs to {named[1]}")
    return disaster


def _once(disasters: Iterable[Disaster]) -> tuple[Disaster, ...]:
    distinct: dict[tuple[str, int], Disaster] = {}
    for disaster in disasters:
        distinct.setdefault((disaster.kind, disaster.id), disaster)
    return tuple(distinct.values())


_NO_MAGNITUDE = re.compile(r"Magnitude 0(\.0+)?", re.IGNORECASE)
_GDACS, _GEO = "{http://www.gdacs.org}", "{http://www.w3.org/2003/01/geo/wgs84_pos#}"


def parse_rss(body: bytes, query: None) -> tuple[Disaster, ...]:
    """Return every event of the feed once."""
    disasters = _once(read_rows(rss_items(body), lambda item: _consistent(_of_item(item))))
    if not disasters:
        raise SourceEmpty("no item")
    return disasters


def _of_item(item: "Element") -> Disaster:
    def text(name: str) -> str:
        return item.findtext(name) or ""

    return Disaster(
        kind=clean(text(f"{_GDACS}eventtype"), 10),
        id=int(positive(text(f"{_GDACS}eventid"))),
        name=clean(text("title")),
        level=_level(text(f"{_GDACS}alertlevel")),
        country=clean_or_none(text(f"{_GDACS}country")),
        severity=_severity(text(f"{_GDACS}severity")),
        started_at=from_rfc822(text(f"{_GDACS}fromdate")),
        ended_at=optional(from_rfc822, text(f"{_GDACS}todate")),
        current=_flag(text(f"{_GDACS}iscurrent")),
        lat=optional(_latitude, text(f"{_GEO}Point/{_GEO}lat")),
        lon=optional(_longitude, text(f"{_GEO}Point/{_GEO}long")),
        url=web_url(text("link")),
        present=_level(text(f"{_GDACS}episodealertlevel")),
    )


def _latitude(text: str) -> float:
    return within(number(text), -90, 90)


def _longitude(text: str) -> float:
    return within(number(text), -360, 360)


def newest(disasters: tuple[Disaster, ...]) -> datetime | None:
    return max((disaster.started_at for disaster in disasters), default=None)


def event_list(kinds: str, levels: str, days: int, *, fresh_s: float) -> Source[EventQuery, tuple[Disaster, ...]]:
    """Return the source of one list; both share a public name. The host gets at most thirty requests an hour."""
    return Source(
        "GDACS.event_list",
        request,
        parse,
        licence=LICENCE,
        hosts=GDACS,
        fresh_s=fresh_s,
        ageless="there may be no severe disaster for weeks",
        timeout_s=15,
        max_bytes=8 * MIB,
        newest=newest,
        least=0,
        proof=Proof.by_second("there is always a disaster of each of the two lists"),
        lists="disasters",
        advances=True,
        key=lambda query: (query.kinds, query.levels),  # the days move with the clock, their meaning stays the same
        untrusted=True,
        probe=lambda now: EventQuery(kinds, levels, now.date() - timedelta(days=days), now.date()),
    )


EVENT_LIST = event_list("EQ;TC;FL;VO;WF;DR", "Orange;Red", 30, fresh_s=300)
GREEN_LIST = event_list("TC;FL;VO;WF;DR", "Green", 5, fresh_s=15 * MINUTE)  # green events may arrive later
RSS = Source(
    "GDACS.rss",
    Get("https://www.gdacs.org/xml/rss.xml", decode="bytes"),
    parse_rss,
    licence=LICENCE,
    hosts=GDACS,
    fresh_s=10 * MINUTE,
    newest_max_s=WEEK,
    lists="disasters",
    timeout_s=12,
    conditional=True,
    newest=newest,
    untrusted=True,
)
