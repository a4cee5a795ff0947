"""Simulate the National Weather Service on the wire."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from tools.simulated.alerts import ENDLESS, PREFIX, SimAlert, alerts, in_force
from toolserver.world.model import Ask, Reply, World, expects, serves

SITE = "https://api.weather.gov"
SENDER = "w-nws.webmaster@noaa.gov"
CONTEXT = [
    "https://geojson.org/geojson-ld/geojson-context.jsonld",
    {"@version": "1.1", "wx": "https://api.weather.gov/ontology#", "@vocab": "https://api.weather.gov/ontology#"},
]
UNDERSTOOD: dict[str, Callable[[SimAlert, str], bool]] = {
    "status": lambda a, value: a.status.lower() == value,
    "area": lambda a, value: a.office.state == value,
    "event": lambda a, value: a.hazard.event == value,
    "severity": lambda a, value: a.hazard.severity == value,
    "urgency": lambda a, value: a.hazard.urgency == value,
    "certainty": lambda a, value: a.hazard.certainty == value,
    "message_type": lambda a, value: a.kind.lower() == value,
    "zone": lambda a, value: value in [code for code, _ in a.zones],
}
POLYGONS = {"TO", "SV", "FF"}  # hazards so small and short that they have their own outline


@serves(
    "NWS.alerts_active",
    "api.weather.gov",
    "/alerts/active",
    forms={
        "auth": Reply.text(
            "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n</BODY>\n</HTML>\n",
            403,
            "text/html",
        )
    },
)
def active(world: World, ask: Ask) -> Reply:
    return _answer(world, ask, _feature)


@active.form("empty")
def nothing(world: World, ask: Ask) -> Reply:
    return _collection([], _minute(world))


@active.form("drift")
def older_form(world: World, ask: Ask) -> Reply:
    """Return the form of 2019: ids without `urn:oid`, fewer members, members in another order."""
    return _answer(world, ask, _old_feature)


@active.form("status:500")
def unexpected(world: World, ask: Ask) -> Reply:
    return _problem(world, 500, "UnexpectedProblem", "Unexpected Problem", "An unexpected problem has occurred.")


@active.form("status:503")
def unavailable(world: World, ask: Ask) -> Reply:
    detail = "An upstream data source is temporarily unavailable. Please try again later."
    return _problem(world, 503, "ServiceUnavailable", "Service Unavailable", detail)


EVENT = re.compile(r"[A-Za-z0-9 ]+(,[A-Za-z0-9 ]+)*")


def _answer(world: World, ask: Ask, feature: Callable[[World, SimAlert], dict[str, Any]]) -> Reply:
    unknown = [name for name in ask.params if name not in UNDERSTOOD]
    if unknown:
        wrong = [{"parameter": f"query.{n}", "message": f'Query parameter "{n}" is not recognized'} for n in unknown]
        return _problem(world, 400, "BadRequest", "Bad Request", "Bad Request", parameterErrors=wrong)
    if not EVENT.fullmatch(ask.params.get("event", "any")):
        return _problem(world, 400, "InvalidParameter", "Invalid Parameter", 'Parameter "event" is invalid')
    minute = _minute(world)
    matching = [a for a in alerts(world.at(minute)) if all(_matches(a, name, v) for name, v in ask.params.items())]
    return _collection([feature(world, alert) for alert in matching], minute)


def _matches(alert: SimAlert, name: str, values: str) -> bool:
    return any(UNDERSTOOD[name](alert, value) for value in values.split(","))


def _minute(world: World) -> float:
    return world.now - world.now % 60  # the list is rewritten every minute


def _collection(features: list[dict[str, Any]], minute: float) -> Reply:
    body = {
        "@context": CONTEXT,
        "type": "FeatureCollection",
        "features": features,
        "title": "Current watches, warnings, and advisories",
        "updated": _time(minute, 0),
    }
    return Reply.json(body, content_type="application/geo+json", last_modified=minute)


def _problem(world: World, status: int, kind: str, title: str, detail: str, **more: Any) -> Reply:
    number = f"{int(world.u('nws.problem', int(world.now)) * 2**32):08x}"
    body = {
        "correlationId": number,
        **more,
        "title": title,
        "type": f"{SITE}/problems/{kind}",
        "status": status,
        "detail": detail,
        "instance": f"{SITE}/requests/{number}",
    }
    return Reply.json(body, status, content_type="application/problem+json")


def _feature(world: World, alert: SimAlert) -> dict[str, Any]:
    return {
        "id": f"{SITE}/alerts/{alert.id}",
        "type": "Feature",
        "geometry": _outline(alert),
        "properties": {
            "@id": f"{SITE}/alerts/{alert.id}",
            "@type": "wx:Alert",
            **_message(world, alert),
            **_new(alert),
        },
    }


def _message(world: World, alert: SimAlert) -> dict[str, Any]:
    """Return the members that every form of a message has, in CAP's words."""
    hazard, offset = alert.hazard, alert.office.offset_h
    return {
        "id": alert.id,
        "areaDesc": "; ".join(name for _, name in alert.zones),
        "geocode": {"SAME": [f"{alert.office.fips}{code[-3:]}" for code, _ in alert.zones], "UGC": _codes(alert)},
        "affectedZones": [f"{SITE}/zones/forecast/{code}" for code in _codes(alert)],
        "references": _references(alert),
        "sent": _time(alert.sent, offset),
        "effective": _time(alert.sent, offset),
        "onset": _time(max(alert.began, alert.sent), offset),
        "expires": _time(alert.expires, offset),
        "ends": None if hazard.event in ENDLESS else _time(alert.ends, offset),
        "status": alert.status,
        "messageType": alert.kind,
        "category": "Met",
        "severity": hazard.severity,
        "certainty": hazard.certainty,
        "urgency": hazard.urgency,
        "event": hazard.event,
        "sender": SENDER,
        "senderName": f"NWS {alert.office.city}",
        "headline": f"{hazard.event} issued {_spoken(alert.sent, offset)} by NWS {alert.office.city}",
        "description": _description(world, alert),
        "instruction": None if hazard.severity == "Unknown" else "Stay informed and be ready to act.",
        "response": "AllClear" if alert.kind == "Cancel" else "Execute" if hazard.severity == "Extreme" else "Prepare",
        "parameters": _parameters(alert),
    }


def _new(alert: SimAlert) -> dict[str, Any]:
    """Return the members that messages have had since 2024."""
    return {
        "note": None,
        "scope": "Public",
        "code": "IPAWSv1.0",
        "language": "en-US",
        "web": "http://www.weather.gov",
        "eventCode": {"SAME": [alert.hazard.product], "NationalWeatherService": [alert.hazard.product]},
    }


def _old_feature(world: World, alert: SimAlert) -> dict[str, Any]:
    old = _old_id(alert.id)
    message = _message(world, alert) | {"id": old, "references": [_old_reference(r) for r in _references(alert)]}
    properties = {"@id": f"{SITE}/alerts/{old}", "@type": "wx:Alert", **message}
    return {"type": "Feature", "id": f"{SITE}/alerts/{old}", "geometry": None, "properties": properties}


def _references(alert: SimAlert) -> list[dict[str, str]]:
    return [_reference(alert, gone, sent) for gone, sent in alert.references]


def _reference(alert: SimAlert, gone: str, sent: float) -> dict[str, str]:
    at = _time(sent, alert.office.offset_h)
    return {"@id": f"{SITE}/alerts/{gone}", "identifier": gone, "sender": SENDER, "sent": at}


def _old_reference(reference: dict[str, str]) -> dict[str, str]:
    old = _old_id(reference["identifier"])
    return reference | {"@id": f"{SITE}/alerts/{old}", "identifier": old}


def _old_id(identifier: str) -> str:
    return f"NWS-IDP-PROD-{identifier.removeprefix(PREFIX)[:7]}-{identifier.removeprefix(PREFIX)[7:]}"


def _codes(alert: SimAlert) -> list[str]:
    return [code for code, _ in alert.zones]


def _outline(alert: SimAlert) -> dict[str, Any] | None:
    if alert.hazard.phenomenon not in POLYGONS:
        return None
    lat, lon = alert.office.lat, alert.office.lon
    ring = [[lon - 0.2, lat - 0.1], [lon + 0.2, lat - 0.1], [lon + 0.2, lat + 0.2], [lon - 0.2, lat - 0.1]]
    return {"type": "Polygon", "coordinates": [[[round(x, 2), round(y, 2)] for x, y in ring]]}


def _description(world: World, alert: SimAlert) -> str:
    area = ", ".join(name for _, name in alert.zones)
    speed = int(world.between("alert.speed", alert.number, 20, 70))
    what = f"* WHAT...{alert.hazard.event}. Gusts of {speed} mph\nare possible."
    return f"{what}\n\n* WHERE...{area}.\n\n* SIMULATED...Not real."


def _parameters(alert: SimAlert) -> dict[str, list[str]]:
    issued = datetime.fromtimestamp(alert.sent, UTC)
    parameters = {
        "AWIPSidentifier": [f"{alert.hazard.product}{alert.office.code}"],
        "WMOidentifier": [f"WWUS74 K{alert.office.code} {issued:%d%H%M}"],
        "NWSheadline": [alert.hazard.event.upper()],
        "BLOCKCHANNEL": ["EAS", "NWEM", "CMAS"],
    }
    if alert.hazard.phenomenon:
        parameters |= {"EAS-ORG": ["WXR"], "VTEC": [_vtec(alert)]}
        parameters["eventEndingTime"] = [_time(alert.ends, alert.office.offset_h)]
    return parameters


def _vtec(alert: SimAlert) -> str:
    hazard = f"{alert.hazard.phenomenon}.{alert.hazard.significance}.{alert.number:04d}"
    begins = "000000T0000Z" if alert.serial else _compact(alert.began)
    return f"/O.{alert.action}.K{alert.office.code}.{hazard}.{begins}-{_compact(alert.ends)}/"


def _compact(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%y%m%dT%H%MZ}"


def _time(at: float, offset_h: int) -> str:
    return datetime.fromtimestamp(at, timezone(timedelta(hours=offset_h))).isoformat()


def _spoken(at: float, offset_h: int) -> str:
    local = datetime.fromtimestamp(at, timezone(timedelta(hours=offset_h)))
    return f"{local:%B} {local.day} at {local:%I:%M%p}".replace(" 0", " ")


# The expected answers of the tools

SEVERITY = {"Extreme": 4.0, "Severe": 3.0, "Moderate": 2.0, "Minor": 1.0, "Unknown": 0.5}
URGENCY = {"Immediate": 4.0, "Expected": 3.0, "Future": 2.0, "Past": 0.5, "Unknown": 0.5}
CERTAINTY = {"Observed": 4.0, "Likely": 3.0, "Possible": 2.0, "Unlikely": 1.0, "Unknown": 0.5}


@expects("severe-weather")
def expected_severe(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    active = in_force(world.at(_minute(world)))
    active = [a for a in active if (a.expires if a.hazard.event in ENDLESS else a.ends) > world.now]
    counts = {word: sum(a.hazard.severity == word for a in active) for word in SEVERITY}
    top = sorted(active, key=lambda a: (-_score(a), -a.sent))[:15]
    rows = [{"id": a.id, "event": a.hazard.event, "score": _score(a)} for a in top]
    return {"total_active": len(active), "counts_by_severity": counts, "top": rows}


def _score(alert: SimAlert) -> float:
    return SEVERITY[alert.hazard.severity] * URGENCY[alert.hazard.urgency] * CERTAINTY[alert.hazard.certainty]


@expects("climate/weather-alerts")
def expected_alerts(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    filters = {"status": "actual"} | {k: v.lower() if k == "status" else v for k, v in params.items() if k != "limit"}
    listed = in_force(world.at(_minute(world)), str(filters["status"]))
    listed = [a for a in listed if (a.expires if a.hazard.event in ENDLESS else a.ends) > world.now]
    matching = [a for a in listed if all(UNDERSTOOD[name](a, value) for name, value in filters.items())]
    shown = matching[: int(params.get("limit", "50"))]
    return {"count": len(shown), "total_matching": len(matching), "data": [{"id": a.id} for a in shown]}
