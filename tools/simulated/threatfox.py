"""Simulate ThreatFox on the wire: an export keyed by id, and the API for keys with other member names."""

import hashlib
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, serves

SLOT_S = 600.0
MALWARE = [("win.vidar", "Vidar"), ("js.clearfake", "ClearFake"), ("win.asyncrat", "AsyncRAT"), ("elf.mirai", "Mirai")]


class SimIndicator(NamedTuple):
    id: int
    at: float
    kind: str
    value: str
    threat: str
    malware: tuple[str, str]
    confidence: int


def indicators(world: World, since: float) -> list[SimIndicator]:
    """Return one indicator every ten minutes, newest first, only on names and addresses reserved for documentation."""
    slots = world.slots("threatfox", since=since, slot_s=SLOT_S, rate=1 / SLOT_S)
    return [_indicator(world, index, at) for index, at in slots][::-1]


def _indicator(world: World, index: int, at: float) -> SimIndicator:
    kind, threat = world.pick(
        "threatfox.kind",
        index,
        [("url", "botnet_cc"), ("domain", "payload_delivery"), ("ip:port", "botnet_cc"), ("sha256_hash", "payload")],
    )
    values = {
        "url": f"https://panel{index % 97}.malware.example/gate.php?u=a@b.example",
        "domain": f"cdn{index % 89}.malware.example",
        "ip:port": f"198.51.100.{index % 254 + 1}:{1024 + index % 60000}",
        "sha256_hash": hashlib.sha256(f"{world.seed}|{index}".encode()).hexdigest(),
    }
    malware = world.pick("threatfox.malware", index, MALWARE)
    confidence = world.pick("threatfox.confidence", index, [50, 75, 100])
    return SimIndicator(1_000_000 + index % 9_000_000, at, kind, values[kind], threat, malware, confidence)


API_FORMS = {
    "auth": Reply.text('{"error": "Unauthorized"}', 401, "application/json"),
    "error200": Reply.json({"query_status": "illegal_days", "data": "The value of days must be between 1 and 7"}),
}


@serves("ThreatFox.recent_iocs", "threatfox.abuse.ch", "/export/json/recent/", forms={"empty": Reply.json({})})
def export(world: World, ask: Ask) -> Reply:
    listed = indicators(world, world.now - 2 * 86400)
    return Reply.json({f"{i.id}": [_exported(i)] for i in listed})


@export.form("drift")
def other_types(world: World, ask: Ask) -> Reply:
    """Return tags as a list, the confidence as text, and members in another order."""
    listed = indicators(world, world.now - 2 * 86400)
    entries = {f"{i.id}": dict(reversed(_exported(i).items())) for i in listed}
    changed = {
        k: [v | {"tags": v["tags"].split(","), "confidence_level": f"{v['confidence_level']}"}]
        for k, v in entries.items()
    }
    return Reply.json(changed)


@serves("ThreatFox.recent_iocs", "threatfox-api.abuse.ch", "/api/v1/", "POST", forms=API_FORMS)
def api(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.headers.get("auth-key")):
        return API_FORMS["auth"]
    listed = indicators(world, world.now - 86400 * int(ask.json["days"]))
    return Reply.json({"query_status": "ok", "data": [_of_api(i) for i in listed]})


def _exported(indicator: SimIndicator) -> dict[str, Any]:
    return {
        "ioc_value": indicator.value,
        "ioc_type": indicator.kind,
        "threat_type": indicator.threat,
        "malware": indicator.malware[0],
        "malware_alias": None,
        "malware_printable": indicator.malware[1],
        "first_seen_utc": _time(indicator.at),
        "last_seen_utc": None,
        "confidence_level": indicator.confidence,
        "is_compromised": False,
        "reference": None,
        "tags": indicator.malware[1].lower(),
        "anonymous": 0,
        "reporter": "sim",
    }


def _of_api(indicator: SimIndicator) -> dict[str, Any]:
    return {
        "id": f"{indicator.id}",
        "ioc": indicator.value,
        "threat_type": indicator.threat,
        "threat_type_desc": "Indicator that identifies a botnet command&control server (C&C)",
        "ioc_type": indicator.kind,
        "ioc_type_desc": "Indicator",
        "malware": indicator.malware[0],
        "malware_printable": indicator.malware[1],
        "malware_alias": None,
        "malware_malpedia": f"https://malpedia.caad.fkie.fraunhofer.de/details/{indicator.malware[0]}",
        "confidence_level": indicator.confidence,
        "first_seen": f"{_time(indicator.at)} UTC",
        "last_seen": None,
        "reference": "",
        "reporter": "sim",
        "tags": [indicator.malware[1].lower()],
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
