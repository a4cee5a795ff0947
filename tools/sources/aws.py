"""Read current events of AWS Health (JSON in UTF-16, no key).

https://health.aws.amazon.com/health/status
"""

import json
from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import clean, from_epoch, number, within
from tools.sources.hosts import MINUTE, STATUS
from toolserver import Get, Licence, Proof, Source, SourceChanged, read_rows

LICENCE = Licence("unclear", "AWS Health Dashboard", "https://health.aws.amazon.com/health/status")


class AwsEvent(NamedTuple):
    """`level` is 0 resolved, 1 information, 2 degradation, 3 disruption."""

    level: int
    summary: str
    service: str
    region: str
    began_at: datetime


def parse(body: bytes, query: None) -> tuple[AwsEvent, ...]:
    """Return every event, resolved ones too. An empty list is the usual answer."""
    listed = json.loads(_decoded(body))
    if not isinstance(listed, list):
        raise SourceChanged("not a list")
    return read_rows(listed, _event)


def _decoded(body: bytes) -> str:
    """Decode UTF-16 with a byte order mark, or UTF-8 in case AWS changes the encoding."""
    utf16 = body.startswith((b"\xfe\xff", b"\xff\xfe"))
    return body.decode("utf-16" if utf16 else "utf-8-sig")


def _event(event: dict[str, Any]) -> AwsEvent:
    return AwsEvent(
        level=int(within(number(event["status"]), 0, 3)),
        summary=clean(event["summary"]),
        service=clean(str(event.get("service_name") or event["service"]), 120),
        region=clean(str(event.get("region_name") or ""), 60),
        began_at=from_epoch(event["date"]),
    )


def newest(events: tuple[AwsEvent, ...]) -> datetime | None:
    return max((event.began_at for event in events), default=None)


AWS_EVENTS = Source(
    "AWS.current_events",
    Get("https://health.aws.amazon.com/public/currentevents", decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=STATUS,
    fresh_s=120,
    ageless="an event may last for weeks, and without an event there is no timestamp",
    keep_s=30 * MINUTE,
    timeout_s=10,
    newest=newest,
    least=0,
    proof=Proof.harmless("AWS reports normal operation by an empty list; an unreadable page is shown as unknown"),
    untrusted=True,
)
