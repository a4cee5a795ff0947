"""Serve a recording of `toolserver doctor --live --record` as routes: each request gets its recorded answer."""

import json
import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from toolserver.core.recorded_exchange import REMOVED, RecordedExchange, read_exchanges, read_summary
from toolserver.world.model import Ask, Reply, Route, Routes, World

_OWN = frozenset(
    "alt-svc connection content-encoding content-length content-type date etag keep-alive last-modified set-cookie"
    " strict-transport-security trailer transfer-encoding upgrade vary".split()
)  # headers of the recorded connection, and those that the listener writes itself
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|(?<![\dA-Za-z.])1\d{9}(\d{3})?(?![\dA-Za-z.])"
)
_SOME_TIME = "<time>"


@dataclass(eq=False, slots=True)
class RecordedReply:
    """One recorded exchange: which requests it answers, and the answer."""

    exchange: RecordedExchange
    route: Route = field(init=False)
    _exactly: re.Pattern[str] = field(init=False)
    _but_for_times: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        exchange = self.exchange
        parts = urlsplit(exchange.url)
        body = "" if exchange.sent_json is None else _write_json(exchange.sent_json)
        wanted = _write_request(parts.path or "/", parts.query, body)
        self._exactly = _as_pattern(wanted)
        self._but_for_times = _as_pattern(_without_times(wanted))
        path = re.compile(re.escape(parts.path or "/"))
        self.route = Route(exchange.source, parts.netloc.lower(), path, self.reply, (exchange.method,))

    def answers(self, request: str, *, at_any_time: bool) -> bool:
        """Return True if this answers a request, ignoring times if `at_any_time`. Any key matches a removed one."""
        pattern = self._but_for_times if at_any_time else self._exactly
        return pattern.fullmatch(_without_times(request) if at_any_time else request) is not None

    def reply(self, world: World, ask: Ask) -> Reply:
        """Return the recorded answer; 502 if there was none."""
        exchange = self.exchange
        if exchange.status is None:
            said = {"error": "this request got no answer when it was recorded", "failure": exchange.failure}
            return Reply.json(said, 502)
        headers = {name: value for name, value in exchange.headers if name.lower() not in _OWN}
        body = exchange.body
        if exchange.is_cut:  # recording stopped within a line, which was left out
            body = body[: body.rfind(b"\n") + 1]
        content_type = exchange.get_header("content-type") or "application/octet-stream"
        modified = _read_time(exchange.get_header("last-modified"))
        return Reply(body, exchange.status, content_type, headers, modified)


class RecordedRoutes(Routes):
    """Answers only the requests of a recording. If a request has several answers, the newest is returned."""

    def __init__(self, folder: Path) -> None:
        """Read a recording. Raises NoRecording."""
        self.recorded_at = float(read_summary(folder)["recorded_at"])  # in Unix seconds, when it was completed
        self._replies: list[RecordedReply] = []
        probes: dict[str, Any] = {}
        for exchange in sorted(read_exchanges(folder), key=lambda each: each.sent_at, reverse=True):
            if exchange.method == "CONNECT":
                said = json.loads(exchange.body) if exchange.status == 200 else {"unreachable": True}
                probes.setdefault((urlsplit(exchange.url).hostname or "").lower(), said)
            else:
                self._replies.append(RecordedReply(exchange))
        routes = [reply.route for reply in self._replies]
        super().__init__(routes, missing="not recorded", probes=probes)

    def find(self, ask: Ask) -> tuple[Route, Ask] | None:
        """Return the answer to exactly this request, else to a request that differs only in times."""
        try:
            body = _write_json(json.loads(ask.body)) if ask.body else ""
        except ValueError:
            return None
        request = _write_request(ask.path, ask.query, body)
        there = [each for each in self._replies if each.route.host == ask.host and ask.method in each.route.methods]
        for at_any_time in (False, True):
            for each in there:
                if each.answers(request, at_any_time=at_any_time):
                    return each.route, ask
        return None


def _write_request(path: str, query: str, body: str) -> str:
    return f"{unquote_plus(path)}?{unquote_plus(query)}\n{body}"


def _write_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _without_times(text: str) -> str:
    return _TIME.sub(_SOME_TIME, text)


def _as_pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(re.escape(REMOVED), ".+"), re.DOTALL)


def _read_time(header: str) -> float | None:
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except ValueError:
        return None
