"""Serve recorded upstream bodies again, with their times moved so that they look recent."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

from toolserver.world import bodies
from toolserver.world.model import Ask, Reply, World
from toolserver.world.request_checks import ControlRefused

LARGEST = 32 * 1024 * 1024
AGE_S = 60  # age of the newest item after the shift
TYPES = {
    ".json": "application/json",
    ".xml": "application/xml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".yml": "text/yaml",
    ".yaml": "text/yaml",
}
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d| UTC)?(?![\d:])")
_DAY = re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d(?![\dT-]| \d)")
_RFC = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|UT|Z|[+-]\d{4}|[A-Z]{3})")
_TEMPLATE = re.compile(
    r"date:(?:now|today (?P<hour>\d\d):(?P<minute>\d\d):(?P<zone>[+-]?\d+))"
    r"(?: (?P<ahead>[+-]?\d+) (?P<unit>second|minute|hour|day)s?)?"
)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_LATER = re.compile(
    r"expir|(^|_)ends?(_|$)|endDate|until|next|due|deadline|close_|valid|window|^net$|onset|^eta$|funding",
    re.IGNORECASE,
)
_TIMED = re.compile(r"time|date|stamp|updat|creat|generat|launched|issued|sent|_at|at$|_i$|^ts?$|unix", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded body that replaces a provider's answer."""

    file: str
    body: bytes
    status: int
    content_type: str
    shift_times: bool

    def __call__(self, world: World, ask: Ask) -> Reply:
        body = shifted(self.body, world.now) if self.shift_times else self.body
        return Reply(body, self.status, self.content_type)

    def describe(self) -> dict[str, Any]:
        return {"file": self.file, "bytes": len(self.body), "status": self.status, "shift_times": self.shift_times}


def read_recorded(samples: Path | None, name: str, shift_times: bool) -> Replay:
    """Read a recorded body by `source/file`.

    Raises:
        ControlRefused: there is no such file in the folder of samples.
    """
    if samples is None or not samples.is_dir():
        raise ControlRefused("no folder of recorded bodies was given when this world was started")
    path = (samples / name.replace("\0", "")).resolve()
    if "\0" in name or not path.is_relative_to(samples.resolve()) or not path.is_file():
        raise ControlRefused(f"there is no recorded body {name!r}")
    if path.stat().st_size > LARGEST:
        raise ControlRefused(f"{name!r} is larger than {LARGEST} bytes")
    status = re.match(r"error-(\d{3})\b", path.name)
    content_type = TYPES.get(path.suffix, "text/plain")
    return Replay(name, path.read_bytes(), int(status[1]) if status else 200, content_type, shift_times)


def shifted(body: bytes, now: float) -> bytes:
    """Move every time in the body by one distance, so that its newest item is a minute old.

    Times that are in the future by their name (an expiry, a next settlement) do not count as the newest item.
    """
    text = body.decode("latin-1")
    if _TEMPLATE.search(text):
        text = _TEMPLATE.sub(lambda m: _expanded(m, now), text)
        return text.encode("latin-1")  # text there that is not a template stays as recorded
    try:
        value, dump = bodies.load(body)
    except bodies.NotJson:
        return _text_shifted(text, now).encode("latin-1")
    seen: list[tuple[str, float]] = []

    def note(name: str, at: float) -> float:
        seen.append((name, at))
        return at

    _walk(value, "", note)
    if not seen:
        return body
    by = _distance(seen, now)
    return dump(_walk(value, "", lambda name, at: at + by))


def _expanded(template: re.Match[str], now: float) -> str:
    """Return the instant of a template: relative to now, or to a time today in a zone with this offset in hours."""
    at = datetime.fromtimestamp(int(now), UTC)
    if template["zone"] is not None:
        there = at.astimezone(timezone(timedelta(hours=int(template["zone"]))))
        at = there.replace(hour=int(template["hour"]), minute=int(template["minute"]), second=0)
    ahead = int(template["ahead"]) * _UNITS[template["unit"]] if template["ahead"] else 0
    return (at + timedelta(seconds=ahead)).isoformat()


def _distance(seen: list[tuple[str, float]], now: float) -> float:
    past = [at for name, at in seen if not _LATER.search(name)] or [at for _, at in seen]
    return round(now - AGE_S - max(past))


Visit = Callable[[str, float], float]


def _walk(value: Any, name: str, visit: Visit) -> Any:
    """Replace every time in a JSON value, by the name of its member, with the result of `visit`."""
    if isinstance(value, dict):
        return {k: _walk(v, k, visit) for k, v in value.items()}
    if isinstance(value, list):
        rows = bool(name == "" or name.endswith("[]"))
        inner = f"{name}[]" if not name.endswith("[]") else name
        return [_walk(v, "time" if i == 0 and _is_row(value, rows) else inner, visit) for i, v in enumerate(value)]
    if isinstance(value, str):
        return _in_text(value, name, visit) if len(value) <= 40 else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _epoch(value, name, visit)
    return value


def _is_row(value: list[Any], nested: bool) -> bool:
    """Return True if a list is a row of an unnamed table: candles start with their time."""
    return nested and len(value) > 2 and not isinstance(value[0], dict | list)


def _epoch(value: float, name: str, visit: Visit) -> float:
    """Shift an epoch number (s or ms) under a name that denotes time; return other numbers unchanged."""
    for scale in (1, 1000):
        if _TIMED.search(name.removesuffix("[]")) and 1.2e9 <= value / scale <= 2.1e9:
            moved = visit(name, value / scale) * scale
            return round(moved) if isinstance(value, int) else moved
    return value


def _in_text(value: str, name: str, visit: Visit) -> str:
    if value.isdigit():
        return str(_epoch(int(value), name, visit))
    if match := _ISO.fullmatch(value):
        return _iso(match, lambda at: visit(name, at))
    if _RFC.fullmatch(value):
        return _rfc(value, lambda at: visit(name, at))
    if _DAY.fullmatch(value):
        return _day(value, lambda at: visit(name, at))
    return value


def _text_shifted(text: str, now: float) -> str:
    """Shift every ISO 8601 and RFC 822 time in XML, CSV or text."""
    seen: list[tuple[str, float]] = []

    def note(at: float) -> float:
        seen.append(("", at))
        return at

    _all_times(text, note)
    if not seen:
        return text
    by = _distance(seen, now)
    return _all_times(text, lambda at: at + by)


def _all_times(text: str, move: Callable[[float], float]) -> str:
    text = _ISO.sub(lambda m: _iso(m, move), text)
    text = _RFC.sub(lambda m: _rfc(m[0], move), text)
    return _DAY.sub(lambda m: _day(m[0], move), text)


def _iso(match: re.Match[str], move: Callable[[float], float]) -> str:
    """Write another instant in exactly the same notation."""
    day, between, minutes, seconds, fraction, zone = match.groups()
    offset = "+00:00" if zone in (None, "Z", " UTC") else zone
    try:
        parsed = datetime.fromisoformat(f"{day}T{minutes}{seconds or ':00'}{offset}")
    except ValueError:
        return match[0]
    new = datetime.fromtimestamp(move(parsed.timestamp()), parsed.tzinfo)
    clock = new.strftime("%H:%M:%S" if seconds else "%H:%M")
    return f"{new:%Y-%m-%d}{between}{clock}{fraction or ''}{zone or ''}"


def _rfc(value: str, move: Callable[[float], float]) -> str:
    try:
        parsed = parsedate_to_datetime(value)
    except ValueError:
        return value
    at = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    new = datetime.fromtimestamp(move(at.timestamp()), UTC)
    return format_datetime(new, usegmt=True)


def _day(value: str, move: Callable[[float], float]) -> str:
    try:
        at = datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError:
        return value
    return f"{at + timedelta(days=(move(at.timestamp()) - at.timestamp()) // 86_400):%Y-%m-%d}"
