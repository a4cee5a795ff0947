"""Read volcanoes of the United States above their usual alert level from USGS (JSON, no key, public domain).

https://volcanoes.usgs.gov/hans-public/api/volcano/
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch, web_url
from tools.parsing.providers import USGS_LICENCE
from tools.sources.hosts import DAY, MINUTE, USGS
from toolserver import Get, Proof, Source, SourceChanged, read_rows


class ElevatedVolcano(NamedTuple):
    """A volcano and the newest notice about it; `color` addresses pilots, `alert` people on the ground."""

    name: str
    vnum: str
    color: str
    alert: str
    sent_at: datetime
    observatory: str | None
    url: str | None


def parse(body: Any, query: None) -> tuple[ElevatedVolcano, ...]:
    """Return every volcano; an empty list is a valid answer."""
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    return read_rows(body, _volcano)


def _volcano(entry: dict[str, Any]) -> ElevatedVolcano:
    return ElevatedVolcano(
        name=clean(entry["volcano_name"], NAME),
        vnum=_number(entry["vnum"]),
        color=clean(entry["color_code"], 20),
        alert=clean(entry["alert_level"], 20),
        sent_at=from_epoch(entry["sent_unixtime"]),
        observatory=clean_or_none(entry.get("obs_fullname"), NAME),
        url=web_url(entry.get("notice_url")),
    )


def _number(vnum: object) -> str:
    """Return the volcano's number: digits, as text or as a number."""
    text = clean(str(vnum), 20)
    if not text.strip("0"):
        raise SourceChanged(f"vnum is {text!r}")
    return text


def newest(volcanoes: tuple[ElevatedVolcano, ...]) -> datetime | None:
    return max((volcano.sent_at for volcano in volcanoes), default=None)


ELEVATED_VOLCANOES = Source(
    "USGS.elevated_volcanoes",
    Get("https://volcanoes.usgs.gov/hans-public/api/volcano/getElevatedVolcanoes"),
    parse,
    licence=USGS_LICENCE,
    hosts=USGS,
    fresh_s=15 * MINUTE,
    newest_max_s=8 * DAY,  # a restless volcano gets a notice at least every week
    timeout_s=10,
    newest=newest,
    least=0,
    proof=Proof.by_second("some volcano of the United States is always restless"),
    untrusted=True,
)
