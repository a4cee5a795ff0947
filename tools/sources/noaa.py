"""Read NOAA's map of watches, warnings and advisories (ArcGIS feature query, no key, public domain).

https://mapservices.weather.noaa.gov/eventdriven/rest/services/WWA/watch_warn_adv/MapServer
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch_ms, from_iso, optional, positive, web_url
from tools.parsing.providers import NWS_LICENCE
from tools.sources.hosts import HOUR, NOAA
from toolserver import MIB, Get, Proof, Source, SourceChanged, SourceDown, SourceEmpty, read_rows

QUERY = "https://mapservices.weather.noaa.gov/eventdriven/rest/services/WWA/watch_warn_adv/MapServer/1/query"
FIELDS = "prod_type,event,phenom,sig,wfo,issuance,onset,ends,expiration,msg_type,cap_id,url"
PARAMS = {"where": "1=1", "outFields": FIELDS, "returnGeometry": "false", "resultRecordCount": "2000", "f": "json"}


class MappedAlert(NamedTuple):
    """One hazard on the map. `significance` is W, A (watch), Y (advisory) or S; `action` NEW, CON, CAN, EXP, …"""

    id: str
    event: str
    significance: str | None
    office: str
    issued: datetime
    expires: datetime
    ends: datetime | None
    action: str | None
    url: str | None


class AlertMap(NamedTuple):
    """Hazards in the order of the map; `truncated` when there are more than one answer can hold."""

    alerts: tuple[MappedAlert, ...]
    truncated: bool


def parse(body: Any, query: None) -> AlertMap:
    """Return every hazard once: a hazard that covers several areas may be drawn several times."""
    if "error" in body:
        raise _failure(body["error"])
    alerts = read_rows(body["features"], lambda feature: _alert(feature["attributes"]))
    if not alerts:
        raise SourceEmpty("no hazard on the map")
    once: dict[str, MappedAlert] = {}
    for alert in alerts:
        once.setdefault(alert.id, alert)
    return AlertMap(tuple(once.values()), body.get("exceededTransferLimit") is True)


def _failure(error: dict[str, Any]) -> Exception:
    code = error.get("code")
    if isinstance(code, int) and code >= 500:
        return SourceDown(word=f"http_{code}")
    return SourceChanged(f"error {code!r:.20}")


def _alert(attributes: dict[str, Any]) -> MappedAlert:
    issued = optional(_time, attributes.get("issuance")) or optional(_time, attributes.get("onset"))
    ends = optional(_time, attributes.get("ends"))
    expires = optional(_time, attributes.get("expiration")) or ends
    if issued is None or expires is None:
        raise SourceChanged("a hazard without times")
    office = clean(attributes["wfo"], 10)
    return MappedAlert(
        id=clean_or_none(attributes.get("cap_id"), 200) or _made_up_id(attributes, issued),
        event=clean(attributes["prod_type"], NAME),
        significance=clean_or_none(attributes["sig"], 10),
        office=office,
        issued=issued,
        expires=expires,
        ends=ends,
        action=clean_or_none(attributes.get("msg_type"), 10),
        url=web_url(attributes.get("url")),
    )


def _made_up_id(attributes: dict[str, Any], issued: datetime) -> str:
    """Return an id made of office, kind and number, unique for a year; without a number, the time replaces it."""
    named = [attributes.get(name) for name in ("wfo", "phenom", "sig", "event")]
    return clean(".".join(str(part) for part in (*named, f"{issued:%y%m%d%H%M}") if part), 200)


def _time(value: Any) -> datetime:
    """Read epoch milliseconds, as a number or in digits, or ISO text."""
    if isinstance(value, str) and not value.strip().isdigit():
        return from_iso(value)
    return from_epoch_ms(positive(value))


def newest(mapped: AlertMap) -> datetime | None:
    return max((alert.issued for alert in mapped.alerts), default=None)


WATCH_WARNING_MAP = Source(
    "NOAA.watch_warning_map",
    Get(QUERY, params=PARAMS),
    parse,
    licence=NWS_LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=6 * HOUR,
    timeout_s=12,
    max_bytes=8 * MIB,
    newest=newest,
    least=0,
    proof=Proof.by_newest(HOUR),  # some office issues a warning every few minutes
    lists="weather alerts",
    untrusted=True,
)
