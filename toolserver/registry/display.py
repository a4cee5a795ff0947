"""Describes how a tool's answer is shown to people: the value on its card, and the pictures on its page.

Both use paths into the payload: member names and list indices joined by dots. `length` is the
length of a list, the empty path the payload itself, and `*` matches every member of an
object.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from toolserver.upstream.source import Source

PictureKind = Literal["series", "map", "matrix", "bars", "grid", "board", "timeline", "flows", "text"]
Mark = Literal["circle", "triangle", "diamond", "square", "peak"]

_PLACE = re.compile(r"\{([^}]*)\}")
_SEPARATOR = re.compile(r"\||, ")


@dataclass(frozen=True, slots=True)
class DayLine:
    """Where the past day of a value or more is kept: what a source answered to a query, which `read` turns into points:
    times with a zone and figures, oldest first.

    `query` may be a function of the time that returns the query. Pages draw what is kept and never query the source.
    """

    source: Source[Any, Any]
    query: Any
    read: Callable[[Any], Sequence[tuple[datetime, float]]]

    def make_query(self, now: datetime) -> Any:
        """Return the query whose answer is kept."""
        return self.query(now) if callable(self.query) else self.query


@dataclass(frozen=True, slots=True)
class MarketQuote:
    """One figure for the strip of markets: paths to its value and its change in percent, and its past day.

    `label` may have paths in braces, like the note of a card.
    """

    label: str
    value: str
    unit: str = ""
    change: str = ""
    days: tuple[DayLine, ...] = ()


@dataclass(frozen=True, slots=True)
class CardValue:
    """The value of an answer that its card shows. `note` is the line below it, with paths in braces.

    `is_series` is False if successive values belong to different things, so that no line is drawn through them.
    `change` leads to the value's change in percent. `days` are where its past day is kept, the first that has one.
    `quotes` are the figures of the answer that the strip of markets shows.
    """

    value: str
    unit: str = ""
    note: str = ""
    is_series: bool = True
    change: str = ""
    days: tuple[DayLine, ...] = ()
    quotes: tuple[MarketQuote, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Return every path that the card reads."""
        return [path for path in (self.value, *_list_paths(self.note), self.change) if path]

    def read(self, payload: Any) -> tuple[Any, list[Any]]:
        """Return the value and the parts of the note, text and values alternating. A missing value is None."""
        return read_path(payload, self.value), fill_places(self.note, payload)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of an answer. Each of the `rows` is drawn once.

    `rows` leads to a list of objects, or to an object that maps names to figures; a `*` in it
    makes a picture for each member. `label`, `time`, `lat` and `lon` are members of a row,
    `values` the members with figures: a series draws a line for each, and bars go to both
    sides if there are two. Without `arguments` there are no rows.

    A board shows the newest figure of each member of an object: `values` are the figure and its change in percent,
    `label` leads to its unit and `time` to its date. On a timeline `label` leads to the lane of a row, and `values` to
    its size, a figure or a word, and its name. Flows go from one of `ends` to the other, or back where the member that
    `label` names is `inflow`. A text is shown as it is, with the number of tokens to which `values` leads from the
    payload. Paths separated by `|` are alternatives: the first with a value counts.

    On the map of the home page the rows are marked with the shape `mark`, which the legend calls `legend`.
    """

    kind: PictureKind
    title: str
    rows: str = ""
    values: tuple[str, ...] = ()
    label: str = ""
    time: str = ""
    lat: str = "lat"
    lon: str = "lon"
    unit: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    mark: Mark = "circle"
    legend: str = ""
    ends: tuple[str, ...] = ()


def fill_places(words: str, payload: Any) -> list[Any]:
    """Return text with paths in braces as its parts: text, and the values in their places. A missing value is None.

    Between braces, `|` separates alternatives, of which the first without a missing value counts. An alternative may be
    several paths with commas between them.
    """
    filled: list[Any] = []
    for index, part in enumerate(_PLACE.split(words)):
        filled += [part] if index % 2 == 0 else _read_alternative(payload, part.split("|"))
    return [part for part in filled if part != ""]


def _list_paths(words: str) -> list[str]:
    return [path for place in _PLACE.findall(words) for path in _SEPARATOR.split(place)]


def _read_alternative(payload: Any, alternatives: Sequence[str]) -> list[Any]:
    read = [[read_path(payload, path) for path in each.split(", ")] for each in alternatives]
    values = next((each for each in read if None not in each), read[0][:1])
    return [part for value in values for part in (", ", value)][1:]


def read_path(payload: Any, path: str) -> Any:
    """Return the value at a path without `*`, or None."""
    for part in path.split(".") if path else ():
        if isinstance(payload, list):
            payload = len(payload) if part == "length" else _item(payload, part)
        else:
            payload = payload.get(part) if isinstance(payload, dict) else None
    return payload


def _item(listed: list[Any], part: str) -> Any:
    index = int(part) if part.isdecimal() else len(listed)
    return listed[index] if index < len(listed) else None
