"""How a tool's answer is shown to people: the value on its card, and the pictures on its page.

Both are said by paths into the payload: member names and indices of lists, joined by dots; `length` is that of a list,
the empty path the payload itself, and `*` stands for every member of an object.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PictureKind = Literal["series", "map", "matrix", "bars", "grid"]

_PLACE = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class CardValue:
    """The one value of an answer, for a card. `note` is the line below it, with paths in braces.

    `is_series` is False where the value is that of another thing each time, so that no line is drawn through them.
    """

    value: str
    unit: str = ""
    note: str = ""
    is_series: bool = True

    @property
    def paths(self) -> list[str]:
        """Every path that it reads."""
        return [self.value, *_PLACE.findall(self.note)]

    def read(self, payload: Any) -> tuple[Any, list[Any]]:
        """The value and the parts of the note: words and values by turns. A value that is not there is None."""
        parts = _PLACE.split(self.note)
        note = [part if index % 2 == 0 else read_path(payload, part) for index, part in enumerate(parts)]
        return read_path(payload, self.value), [part for part in note if part != ""]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of an answer: each of the `rows` is drawn once.

    `rows` leads to a list of objects, or to an object that maps names to figures; a `*` in it makes a picture for each
    member. `label`, `time`, `lat` and `lon` are members of a row, `values` those with figures: a series draws a line
    for each, bars to both sides where there are two. `given` are the arguments without which the rows are not there.
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
    given: Mapping[str, str] = field(default_factory=dict)


def read_path(payload: Any, path: str) -> Any:
    """What stands at a path without `*`, or None."""
    for part in path.split(".") if path else ():
        if isinstance(payload, list):
            payload = len(payload) if part == "length" else _item(payload, part)
        else:
            payload = payload.get(part) if isinstance(payload, dict) else None
    return payload


def read_paths(payload: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The name and the value of everything that a path leads to; the name is what stands in place of its `*`."""
    before, star, after = path.partition("*")
    if not star:
        yield "", read_path(payload, path)
        return
    members = read_path(payload, before.removesuffix("."))
    for name, member in members.items() if isinstance(members, dict) else ():
        yield name, read_path(member, after.removeprefix("."))


def _item(listed: list[Any], part: str) -> Any:
    index = int(part) if part.isdecimal() else len(listed)
    return listed[index] if index < len(listed) else None
