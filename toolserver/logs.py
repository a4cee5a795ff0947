"""Structured logs on stderr: what happened, to which tool and source, never a token."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

_SECRET = re.compile(r"svc_live_[0-9a-f]{8,}|svc_buy_[0-9a-f]{8,}|whsec_[0-9a-f]{8,}|(?<=[?&]api_key=)[^&\s]+")
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


def hidden(text: str) -> str:
    """Text with anything that looks like a token, memo, secret or key blotted out."""
    return _SECRET.sub("[hidden]", text)


def event_of(record: logging.LogRecord) -> dict[str, Any]:
    """A record as an event: when, how bad, who, what, and the fields given as `extra`."""
    event: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": record.getMessage(),
    }
    event |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if record.exc_info:
        event["exception"] = logging.Formatter().formatException(record.exc_info)
    return event


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        return hidden(json.dumps(event_of(record), ensure_ascii=False, default=str))


class Text(logging.Formatter):
    """For a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        event = event_of(record)
        exception = event.pop("exception", "")
        head = f"{event.pop('at')[11:19]} {event.pop('level'):7} {event.pop('event')}"
        del event["logger"]
        fields = "".join(f"  {name}={value}" for name, value in event.items())
        return hidden(head + fields + (f"\n{exception}" if exception else ""))


def set_up(level: str, format: str) -> None:
    """Send all logging of this process to stderr in one form."""
    as_json = format == "json" or (format == "auto" and not sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "hpack", "aiosqlite", "hypercorn", "uvicorn", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
