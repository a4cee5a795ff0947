"""Read weather alerts of the United States from the National Weather Service (GeoJSON, no key, public domain).

https://www.weather.gov/documentation/services-web-api
"""

from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from tools.parsing.fields import DESCRIPTION, NAME, clean, clean_or_none, from_iso, optional, web_url
from tools.parsing.providers import NWS_LICENCE
from tools.sources.hosts import HOUR, MINUTE, NOAA
from toolserver import MIB, Get, Keys, Proof, Source, SourceChanged, SourceUnproved, read_rows

ACTIVE = "https://api.weather.gov/alerts/active"
LONGEST_DESCRIPTION = 10_000  # characters
STAMP_S = 20 * MINUTE

Severity = Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"]
Urgency = Literal["Immediate", "Expected", "Future", "Past", "Unknown"]
Certainty = Literal["Observed", "Likely", "Possible", "Unlikely", "Unknown"]
Status = Literal["Actual", "Exercise", "System", "Test", "Draft"]

W = TypeVar("W", bound=str)


class AlertQuery(NamedTuple):
    """A selection of the active alerts; None means any. The query has no limit: the service refuses one."""

    area: str | None = None
    event: str | None = None
    severity: Severity | None = None
    urgency: Urgency | None = None
    status: Status = "Actual"


class Alert(NamedTuple):
    """One message. `references` are the ids of the messages it replaces; `ends` is when the weather ends, if known.

    `states` are the two-letter codes of each state, territory or marine area in the message.
    """

    id: str
    event: str
    severity: Severity
    urgency: Urgency
    certainty: Certainty
    area: str
    sent: datetime
    effective: datetime
    expires: datetime
    ends: datetime | None
    message_type: str
    headline: str | None
    description: str | None
    sender: str | None
    web: str | None
    url: str | None
    references: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()


class AlertList(NamedTuple):
    """Messages in the order of the service, and when the list last changed."""

    alerts: tuple[Alert, ...]
    updated: datetime | None


ALL = AlertQuery()


def request(query: AlertQuery, keys: Keys) -> Get:
    """Return the request, without filters that the service refuses (names with marks): `parse` applies those."""
    filters = {
        "status": query.status.lower(),
        "area": query.area,
        "event": query.event if _plain(query.event) else None,
        "severity": query.severity,
        "urgency": query.urgency,
    }
    return Get(ACTIVE, params={k: v for k, v in filters.items() if v}, headers={"Accept": "application/geo+json"})


def parse(body: Any, query: AlertQuery) -> AlertList:
    """Return every message. An empty unfiltered list is a fault: the United States always have an alert."""
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    alerts = read_rows(
        body["features"], lambda feature: _alert(feature) if _has_status(feature, query.status) else None
    )
    if not _plain(query.event):
        alerts = tuple(alert for alert in alerts if alert.event == query.event)
    if query != ALL:
        return AlertList(alerts, optional(from_iso, body.get("updated")))
    if not alerts:
        raise SourceUnproved("no alert in the whole country")
    return AlertList(alerts, from_iso(body["updated"]))


def _has_status(feature: dict[str, Any], status: Status) -> bool:
    return str(feature["properties"].get("status") or status).lower() == status.lower()


def _plain(event: str | None) -> bool:
    """Return True if an event's name has only letters, digits and blanks."""
    return event is None or all(word.isalnum() for word in event.split())


def _alert(feature: dict[str, Any]) -> Alert:
    properties = feature["properties"]
    return Alert(
        id=clean(properties["id"], 200),
        event=clean(properties["event"], NAME),
        severity=_word(properties["severity"], get_args(Severity)),
        urgency=_word(properties["urgency"], get_args(Urgency)),
        certainty=_word(properties["certainty"], get_args(Certainty)),
        area=clean(properties["areaDesc"], DESCRIPTION),
        sent=from_iso(properties["sent"]),
        effective=from_iso(properties["effective"]),
        expires=from_iso(properties["expires"]),
        ends=optional(from_iso, properties.get("ends")),
        message_type=clean(properties["messageType"], 40),
        headline=clean_or_none(properties.get("headline")),
        description=clean_or_none(properties.get("description"), LONGEST_DESCRIPTION),
        sender=clean_or_none(properties.get("senderName"), NAME),
        web=web_url(properties.get("web")),
        url=web_url(feature.get("id")),
        states=_states(properties),
        references=frozenset(filter(None, (optional(_identifier, r) for r in properties.get("references") or ()))),
    )


def _states(properties: dict[str, Any]) -> frozenset[str]:
    """Return the first two letters of the zones: `OKZ010` is in Oklahoma."""
    codes = (properties.get("geocode") or {}).get("UGC") or ()
    zones = (str(zone).rpartition("/")[2] for zone in properties.get("affectedZones") or ())
    return frozenset(str(code)[:2] for code in (*codes, *zones))


def _word(text: str, words: tuple[W, ...]) -> W:
    """Return the word if the class has it, otherwise the class's own Unknown."""
    return next((word for word in words if word == text), words[-1])


def _identifier(reference: dict[str, Any]) -> str:
    return clean(reference["identifier"], 200)


def newest(listed: AlertList) -> datetime | None:
    return max((alert.sent for alert in listed.alerts), default=None)


def _source(**more: Any) -> Source[AlertQuery, AlertList]:
    return Source(
        "NWS.alerts_active",
        request,
        parse,
        licence=NWS_LICENCE,
        hosts=NOAA,
        fresh_s=60,
        keep_s=6 * HOUR,
        timeout_s=10,
        max_bytes=16 * MIB,
        conditional=True,
        newest=newest,
        stamp=lambda listed: listed.updated,
        newest_max_s=STAMP_S,
        least=0,
        proof=Proof.by_stamp(STAMP_S),
        lists="weather alerts",
        untrusted=True,
        probe=ALL,
        **more,
    )


ALERTS = _source()
"""All of the country, to be asked for with `ALL`."""

FILTERED_ALERTS = _source(user_input=True)
"""Messages of another status than `Actual`, as a caller asks for them: what is real is cut from all of the country."""
