"""Reads the newest kept value of each free tool that shows one, for the cards of the home page.

A reader gets the kept values and never waits for an upstream. While someone views the page,
and for ten minutes after, each of these answers is recomposed when it has expired, as if it
had been called. A page with many viewers therefore causes no more upstream requests than one
agent would.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import anyio

from toolserver.calls.arguments import build_cache_key
from toolserver.calls.response import RenderedResponse, decode
from toolserver.calls.response_cache import ResponseCache
from toolserver.core.models import DataPoint, iso, moment
from toolserver.registry.display import read_path
from toolserver.registry.registry import Operation, Registry, Tier

WATCHED_S = 600.0
AT_ONCE = 6  # answers whose recomposition one check may start, beside those that were never composed
EVERY_S = 60.0  # the minimum time between two attempts at one answer, and between two points of a series
SERIES = "live_values"
KEEP_S = 86_400.0
POINTS = 60  # shown for each series
_NOTHING: Mapping[str, Any] = MappingProxyType(
    {"value": None, "note": [], "change_percent": None, "sources": [], "updated_at": None, "stale": None}
    | {"expires_at": None, "series": []}
)


class LiveValues:
    """The cards of one service."""

    def __init__(self, registry: Registry, answers: ResponseCache) -> None:
        self._answers, self._history = answers, answers.surroundings.history
        self.shown = [o for o in registry if _is_kept(o) and o.headline is not None]
        self._kept_by_name = {o.name: o for o in registry if _is_kept(o)}
        self._asked_at: dict[str, float] = {}  # by the names of tools
        self._tried: dict[str, float] = {}

    def now(self) -> datetime:
        """Return the time of the service."""
        return self._answers.clock.now()

    def read(self) -> dict[str, Any]:
        """Return every card, and record that someone is viewing the page."""
        clock = self._answers.clock
        self._asked_at |= dict.fromkeys((operation.name for operation in self.shown), clock.monotonic())
        return {"generated_at": iso(clock.now()), "values": [self._card(operation) for operation in self.shown]}

    def view(self, name: str) -> tuple[Operation, RenderedResponse | None, Sequence[DataPoint]] | None:
        """Return a free tool, its newest kept answer to a call without arguments and the
        points seen of its value, and record that someone is viewing its page. Return None for
        a tool whose page shows no kept answer.
        """
        operation = self._kept_by_name.get(name)
        if operation is None:
            return None
        self._asked_at[name] = self._answers.clock.monotonic()
        rendered = self.kept(operation)
        if operation.headline is None:
            return operation, rendered, ()
        self._card(operation)
        return operation, rendered, self._series(operation)

    def card(self, name: str) -> tuple[Operation, dict[str, Any]] | None:
        """Return a tool and its card, and record that someone is viewing it. Return None for a tool without one."""
        operation = self._kept_by_name.get(name)
        if operation is None or operation.headline is None:
            return None
        self._asked_at[name] = self._answers.clock.monotonic()
        return operation, self._card(operation)

    async def fill(self, *, within_s: float) -> int:
        """Compose every card that has no answer, all at once, and wait. Return the number that still have none."""
        self.read()
        self.refresh_due()
        with anyio.move_on_after(within_s):
            while self._count_empty():  # noqa: ASYNC110 # nothing says when an answer is kept
                await anyio.sleep(0.05)
        return self._count_empty()

    def _count_empty(self) -> int:
        return sum(self.kept(operation) is None for operation in self.shown)

    def refresh_due(self) -> int:
        """Start to recompose expired answers while someone is viewing the page. Return the number started."""
        now = self._answers.clock.monotonic()
        looked_at = (self._kept_by_name[name] for name, at in self._asked_at.items() if now - at <= WATCHED_S)
        due = [operation for operation in looked_at if self._is_due(operation, now)]
        new = [operation for operation in due if operation.name not in self._tried]
        due = new or due[:AT_ONCE]  # on a fresh server a visitor waits for nothing but the sources
        for operation in due:
            self._tried[operation.name] = now
            self._answers.refresh(operation)
        return len(due)

    def _is_due(self, operation: Operation, now: float) -> bool:
        tried = self._tried.get(operation.name)
        if tried is not None and now - tried < EVERY_S:
            return False
        rendered = self.kept(operation)
        return rendered is None or rendered.expires_at <= self._answers.clock.time()

    def kept(self, operation: Operation) -> RenderedResponse | None:
        """Return the newest kept answer to a call without arguments, expired or not."""
        return self._answers.find_newest(build_cache_key(operation, operation.arguments()))

    def _card(self, operation: Operation) -> dict[str, Any]:
        assert operation.headline is not None
        rendered = self.kept(operation)
        card: dict[str, Any] = {"tool": operation.name, "unit": operation.headline.unit}
        if rendered is None:
            return {**card, **_NOTHING}
        if "card" not in rendered.memo:
            rendered.memo["card"] = self._read(operation, rendered)
        series = [[iso(point.at), point.value] for point in self._series(operation)]
        shown: dict[str, Any] = card | rendered.memo["card"] | {"series": series}
        return shown

    def _read(self, operation: Operation, rendered: RenderedResponse) -> dict[str, Any]:
        """Return the card of an answer, read once for each answer; a figure becomes a point of the tool's series."""
        assert operation.headline is not None
        body = decode(rendered.payload)
        payload = body.get("data") if operation.enveloped else body
        value, note = operation.headline.read(payload)
        at = moment(rendered.generated_at)
        oldest = moment(rendered.oldest_at if rendered.oldest_at is not None else rendered.generated_at)
        is_figure = isinstance(value, int | float) and not isinstance(value, bool)
        if is_figure and operation.headline.is_series and not rendered.stale:
            last = self._history.last(SERIES, operation.name)
            if last is None or (at - last.at).total_seconds() >= EVERY_S:
                self._history.note(SERIES, operation.name, value, at, keep_s=KEEP_S)
        expires = moment(rendered.expires_at)
        times = {
            "updated_at": None if value is None else iso(oldest),
            "stale": rendered.stale,
            "expires_at": iso(expires),
        }
        change = read_path(payload, operation.headline.change) if operation.headline.change else None
        sources = body.get("_meta", {}).get("attribution", [])
        return {"value": value, "note": note, "change_percent": change, "sources": sources, **times}

    def _series(self, operation: Operation) -> list[DataPoint]:
        """Return at most `POINTS` of the kept points: every nth, counted from the newest."""
        points = self._history.points(SERIES, operation.name)
        step = -(-len(points) // POINTS) or 1
        return points[::-1][::step][::-1]


def _is_kept(operation: Operation) -> bool:
    """Return True if a call without arguments and token returns a kept answer."""
    needs_nothing = not any(field.is_required() for field in operation.arguments.model_fields.values())
    return operation.tier is Tier.FREE and operation.reads_only and needs_nothing and operation.longest_ttl > 0
