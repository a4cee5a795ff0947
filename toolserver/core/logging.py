"""Writes structured logs to stderr, as JSON lines or text, with tokens and other secrets removed from every line."""

import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from toolserver.core import tracing
from toolserver.errors import StorageUnavailable

_SECRET = re.compile(r"(?:svc_(?:live|free|buy|code|access|refresh)|whsec)_[0-9a-f]{8,}|(?<=[?&]api_key=)[^&\s]+")
LINES_A_MINUTE = 120  # per cause; at 300 bytes a line, that is 50 MB a day
CAUSES = 1000  # distinguished within a minute
Cause: TypeAlias = "tuple[str, int, str, str | None]"
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


def hidden(text: str) -> str:
    """Replace everything that looks like a token, memo, secret or key with `[hidden]`."""
    return _SECRET.sub("[hidden]", text)


def event_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record's time, level, logger and message, the fields given as `extra`, and the exception."""
    event: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": record.getMessage(),
    }
    event |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if request_id := tracing.request_id.get():
        event.setdefault("request_id", request_id)
    if tracing.tracer is not None:
        event = {**tracing.log_fields(), **event}
    if record.exc_info:
        event["exception"] = logging.Formatter().formatException(record.exc_info)
    return event


class JsonLines(logging.Formatter):
    """Formats a record as one line with one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        return hidden(json.dumps(event_of(record), ensure_ascii=False, default=str))


class Text(logging.Formatter):
    """Formats a record for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        event = event_of(record)
        exception = event.pop("exception", "")
        head = f"{event.pop('at')[11:19]} {event.pop('level'):7} {event.pop('event')}"
        del event["logger"]
        fields = "".join(f"  {name}={value}" for name, value in event.items())
        return hidden(head + fields + (f"\n{exception}" if exception else ""))


class CauseLimit(logging.Filter):
    """Limits the lines per cause and minute, so that no caller can fill the disk with logs.

    A cause is a logger, a level, a message before its values are inserted, and the exception
    type. The first line of a cause after a minute says in `left_out` how many lines were not
    written. A storage failure is expected while the disk fails, so it is logged with its
    reason and without a traceback.
    """

    def __init__(
        self,
        most: int = LINES_A_MINUTE,
        *,
        causes: int = CAUSES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._most, self._causes, self._monotonic = most, causes, monotonic
        self._minute = 0
        self._lines: Counter[Cause] = Counter()
        self._left_out: Counter[Cause] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], StorageUnavailable):
            record.reason, record.exc_info = str(record.exc_info[1]), None
        self._begin_minute()
        cause = _cause_of(record)
        if cause not in self._lines and len(self._lines) >= self._causes:
            cause = "", 0, "", None
        self._lines[cause] += 1
        if self._lines[cause] > self._most:
            return False
        if (left_out := self._left_out.pop(cause, 0)) > 0:
            record.left_out = left_out
        return True

    def _begin_minute(self) -> None:
        minute = int(self._monotonic() // 60)
        if minute != self._minute:
            self._left_out = Counter({c: n - self._most for c, n in self._lines.items() if n > self._most})
            self._minute, self._lines = minute, Counter()


def _cause_of(record: logging.LogRecord) -> Cause:
    failure = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
    return record.name, record.levelno, str(record.msg), failure


def set_up(level: str, format: str) -> None:
    """Send all logs of this process to stderr. `format` is json, text, or auto: text on a terminal, else JSON."""
    as_json = format == "json" or (format == "auto" and not sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Text())
    handler.addFilter(CauseLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "hpack", "aiosqlite", "hypercorn", "uvicorn", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("mcp").setLevel(logging.ERROR)  # it would warn about each malformed message from a client
