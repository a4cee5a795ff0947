"""Describes how a tool's answer is shown to people: the value on its card, and the pictures on its page.

Both use paths into the payload: member names and list indices joined by dots. `length` is the
length of a list, the empty path the payload itself, and `*` matches every member of an
object.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PictureKind = Literal["series", "map", "matrix", "bars", "grid"]

_PLACE = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class CardValue:
    """The value of an answer that its card shows. `note` is the line below it, with paths in braces.

    `is_series` is False if successive values belong to different things, so that no line is drawn through them.
    """

    value: str
    unit: str = ""
    note: str = ""
    is_series: bool = True

    @property
    def paths(self) -> list[str]:
        """Return every path that the card reads."""
        return [self.value, *_PLACE.findall(self.note)]

    def read(self, payload: Any) -> tuple[Any, list[Any]]:
        """Return the value and the parts of the note, text and values alternating. A missing value is None."""
        parts = _PLACE.split(self.note)
        note = [part if index % 2 == 0 else read_path(payload, part) for index, part in enumerate(parts)]
        return read_path(payload, self.value), [part for part in note if part != ""]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of an answer. Each of the `rows` is drawn once.

    `rows` leads to a list of objects, or to an object that maps names to figures; a `*` in it
    makes a picture for each member. `label`, `time`, `lat` and `lon` are members of a row,
    `values` the members with figures: a series draws a line for each, and bars go to both
    sides if there are two. Without `arguments` there are no rows.
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
