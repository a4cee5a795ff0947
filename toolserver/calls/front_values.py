"""Reads what the home page shows beside its cards (the strip of markets, places on the map, news and states) and what
the page of a tool shows: its newest answer and the past day of its figures.

Everything is taken from kept answers and kept bodies of sources: a reader never causes an
upstream request.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec import Raw

from toolserver.calls.live_values import LiveValues
from toolserver.calls.response import decode, encode
from toolserver.core.models import iso
from toolserver.registry.display import DayLine, Mark, Picture, fill_places, read_path
from toolserver.registry.registry import Operation
from toolserver.upstream.cache import SourceCache

DAY = timedelta(hours=25)  # the oldest point of a line that is called the past day
WEEK = timedelta(days=7, hours=1)
MONTH = timedelta(days=31)
SEEN_FOR = timedelta(hours=1)  # what this service has seen is drawn as a line once it goes back so far
LEAST = 3  # points of a line: a source of one value a day has two of them in the hour after its newest
LONGER = 36  # points from which a line of a week says more than that of its day
PLACES = 50  # of one tool on the map: the greatest, or the first where there is no figure
NEWS, NEWS_OF_ONE = 14, 5  # rows of the list, and those of one tool


@dataclass(frozen=True, slots=True)
class FrontLayer:
    """What the places of one map have in common: the tool, the words and the mark of the legend, and the unit."""

    tool: str
    kind: str
    mark: Mark
    unit: str


@dataclass(frozen=True, slots=True)
class FrontPlace:
    """A row of an answer with a place. `share` is its figure from 0, the least of the answer, to 1; None: no figure."""

    layer: FrontLayer
    label: str
    lat: float
    lon: float
    value: float | None
    share: float | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class FrontQuote:
    """A figure of the strip of markets. `value` is None while there is none; `line` is its past day, oldest first."""

    tool: str
    label: str
    value: float | None
    unit: str
    change_percent: float | None
    stale: bool
    line: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class FrontState:
    """The state of a service, in a word of the service's page of status."""

    tool: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class FrontValues:
    """What the home page shows at one moment. `cards` are those of `/live.json`, with `line`, the past day of each.

    `news` are places with a time: first the next to come, then those that were, newest first.
    """

    now: datetime
    cards: Sequence[dict[str, Any]] = ()
    quotes: Sequence[FrontQuote] = ()
    places: Sequence[FrontPlace] = ()
    news: Sequence[FrontPlace] = ()
    states: Sequence[FrontState] = field(default=())


class FrontReader:
    """Reads the values of one service."""

    def __init__(self, live: LiveValues, cache: SourceCache) -> None:
        self._live, self._cache = live, cache

    async def read(self) -> FrontValues:
        """Return all values, and record that someone is viewing the page."""
        read = self._live.read()
        now = self._live.now()
        cards = {card["tool"]: card for card in read["values"]}
        quotes: list[FrontQuote] = []
        places: list[FrontPlace] = []
        states: list[FrontState] = []
        for operation in self._live.shown:
            card, payload = cards[operation.name], self._payload(operation)
            headline = operation.headline
            assert headline is not None
            seen = [value for _, value in card["series"]]
            card["line"] = _values(await self._day(self._choose_days(operation, headline.days), now)) or seen
            for quote in headline.quotes:
                label = _write_label(quote.label, payload)
                quotes.append(
                    FrontQuote(
                        tool=operation.name,
                        label=label or operation.title,
                        value=_figure(read_path(payload, quote.value)),
                        unit=quote.unit,
                        change_percent=_figure(read_path(payload, quote.change)) if quote.change else None,
                        stale=bool(card["stale"]),
                        line=_values(await self._day(self._choose_days(operation, quote.days), now))
                        or (seen if quote.value == headline.value else []),
                    )
                )
            places += _read_places(operation, payload)
            states += _read_states(operation, payload)
        return FrontValues(now, list(cards.values()), quotes, places, _choose_news(places, now), states)

    async def read_answer(self, name: str) -> bytes | None:
        """Return the newest kept answer of a free tool to a call without arguments, as JSON; None for other tools.

        The JSON has the current time, the answer (null while there is none) and `lines`, the past day of each figure
        of the tool: `points` are pairs of a time in seconds since 1970 and a value, oldest first, and `seen` says that
        they are what this service has seen for an hour or longer, as no source keeps a day. `week` and `month` are
        those of the past week and the past 31 days, empty where the source keeps less; a source of one value a day has
        a month only.
        """
        viewed = self._live.view(name)
        if viewed is None:
            return None
        operation, rendered, seen = viewed
        now = self._live.now()
        lines = await self._lines(operation, [(point.at, point.value) for point in seen], now)
        head = {"tool": name, "generated_at": iso(now), "lines": lines}
        return encode({**head, "answer": None if rendered is None else Raw(rendered.payload)})

    async def read_card(self, name: str) -> dict[str, Any] | None:
        """Return a tool's card of `/live.json` with `line`, the past day of its value, and record that someone is
        viewing it. Return None for a tool without a card.
        """
        card = self._live.card(name)
        if card is None:
            return None
        operation, fields = card
        assert operation.headline is not None
        line = await self._day(self._choose_days(operation, operation.headline.days), self._live.now())
        return {**fields, "line": _values(line) or [value for _, value in fields["series"]]}

    async def _lines(
        self, operation: Operation, seen: Sequence[tuple[datetime, float]], now: datetime
    ) -> list[dict[str, Any]]:
        headline = operation.headline
        if headline is None:
            return []
        payload = self._payload(operation)
        figures = [(_write_label(quote.label, payload), quote.unit, quote.days) for quote in headline.quotes]
        if not any(days for _, _, days in figures):
            figures = [(operation.title, headline.unit, headline.days)]
        lines = []
        for label, unit, kept_days in figures:
            days = self._choose_days(operation, kept_days)
            points = await self._day(days, now)
            week = await self._day(days, now, WEEK)
            month = await self._day(days, now, MONTH)
            longer = {
                "week": _pairs(week) if len(week) >= LONGER else [],
                "month": _pairs(month) if month and now - month[0][0] > 2 * WEEK else [],
            }
            is_alone = len(figures) == 1 and not any(longer.values())
            shown = points or (seen if is_alone and _span(seen) >= SEEN_FOR else [])
            if len(shown) > 1 or any(longer.values()):
                head = {"label": label or operation.title, "unit": unit, "points": _pairs(shown)}
                lines.append({**head, **longer, "seen": bool(shown) and not points})
        return lines

    def _payload(self, operation: Operation) -> Any:
        """Return what the newest kept answer says, or None."""
        body = self._body(operation)
        return body.get("data") if body is not None and operation.enveloped else body

    def _body(self, operation: Operation) -> Any:
        """Return the newest kept answer with its `_meta`, read once for each answer, or None."""
        rendered = self._live.kept(operation)
        if rendered is None:
            return None
        if "front" not in rendered.memo:
            rendered.memo["front"] = decode(rendered.payload)
        return rendered.memo["front"]

    def _choose_days(self, operation: Operation, days: Sequence[DayLine]) -> Sequence[DayLine]:
        """Return the days kept of the sources that the answer names, so that a line and its value have one source.

        Where it names none of them, as the days come from others than the value, return all.
        """
        meta = (self._body(operation) or {}).get("_meta", {})
        answered = {source["name"] for source in meta.get("sources", ()) if source["status"] != "error"}
        return [day for day in days if day.source.name in answered] or days

    async def _day(self, days: Sequence[DayLine], now: datetime, span: timedelta = DAY) -> list[tuple[datetime, float]]:
        """Return the past day of a value, or another span, from the first source that keeps one, oldest first."""
        for day in days:
            kept = await self._cache.kept(day.source, day.make_query(now))
            points = day.read(kept.value) if kept is not None else ()
            line = [(at, value) for at, value in points if now - at <= span]
            if len(line) >= LEAST:
                return line
        return []


def _read_places(operation: Operation, payload: Any) -> list[FrontPlace]:
    """Return the rows of a tool's maps that have a place, the greatest first, at most `PLACES` of them."""
    places: list[FrontPlace] = []
    for picture in operation.pictures:
        if picture.kind != "map" or picture.arguments:
            continue
        layer = FrontLayer(operation.name, picture.legend or picture.title, picture.mark, picture.unit)
        rows = [row for row in _rows(payload, picture) if _figure(row.get(picture.lat)) is not None]
        figures = [_figure(read_path(row, picture.values[0])) if picture.values else None for row in rows]
        known = [figure for figure in figures if figure is not None]
        least, most = min(known, default=0.0), max(known, default=0.0)
        for row, figure in zip(rows, figures, strict=True):
            lat, lon = _figure(row.get(picture.lat)), _figure(row.get(picture.lon))
            if lat is None or lon is None:
                continue
            places.append(
                FrontPlace(
                    layer=layer,
                    label=str(read_path(row, picture.label) or picture.title),
                    lat=lat,
                    lon=lon,
                    value=figure,
                    share=None if figure is None or most == least else (figure - least) / (most - least),
                    at=_time(read_path(row, picture.time)) if picture.time else None,
                )
            )
    places.sort(key=lambda place: -(place.share or 0.0))
    return places[:PLACES]


def _read_states(operation: Operation, payload: Any) -> Iterator[FrontState]:
    for picture in operation.pictures:
        if picture.kind == "grid" and picture.values and not picture.arguments:
            for row in _rows(payload, picture):
                name, state = read_path(row, picture.label), read_path(row, picture.values[0])
                yield FrontState(operation.name, str(name), str(state or "unknown"))


def _choose_news(places: Sequence[FrontPlace], now: datetime) -> list[FrontPlace]:
    """Return the next event to come and then the newest that were, not all of one tool."""
    timed = [(place.at, place) for place in places if place.at is not None]
    coming = sorted(((at, place) for at, place in timed if at > now), key=lambda one: one[0])[:1]
    past = sorted(((at, place) for at, place in timed if at <= now), key=lambda one: one[0], reverse=True)
    chosen: list[FrontPlace] = []
    counts: dict[str, int] = {}
    for _, place in past:
        counts[place.layer.tool] = counts.get(place.layer.tool, 0) + 1
        if counts[place.layer.tool] <= NEWS_OF_ONE:
            chosen.append(place)
    return [*(place for _, place in coming), *chosen][:NEWS]


def _rows(payload: Any, picture: Picture) -> list[dict[str, Any]]:
    rows = read_path(payload, picture.rows)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _write_label(label: str, payload: Any) -> str:
    """Return the name of a figure, with its paths in braces filled from the payload."""
    return "".join(str(part) for part in fill_places(label, payload) if part is not None)


def _span(points: Sequence[tuple[datetime, float]]) -> timedelta:
    return points[-1][0] - points[0][0] if points else timedelta()


def _pairs(points: Sequence[tuple[datetime, float]]) -> list[tuple[int, float]]:
    return [(int(at.timestamp()), value) for at, value in points]


def _values(points: Sequence[tuple[datetime, float]]) -> list[float]:
    return [value for _, value in points]


def _figure(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _time(value: Any) -> datetime | None:
    """Return a time that an answer has as text. A date without a time of day is none."""
    if not isinstance(value, str) or "T" not in value:
        return None
    return datetime.fromisoformat(value)
