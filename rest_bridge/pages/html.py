"""HTML put together from plain values: whatever is not markup already is escaped."""

import re
from collections.abc import Iterable
from html import escape
from typing import Any

_ALONE = {"br", "hr", "link", "meta"}
_CODE = re.compile(r"`([^`]+)`")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """The value as markup: itself if it is markup, escaped otherwise."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def joined(parts: Iterable[object]) -> Html:
    """Parts one after the other, each escaped unless it is markup."""
    return Html("".join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: Any) -> Html:
    """An element. `class_` is class, `_` in a name is `-`; an attribute that is None or False is left out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    shown = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value))}"'
        for key, value in given.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{shown}>" if name in _ALONE else f"<{name}{shown}>{joined(children)}</{name}>")


def prose(sentence: str) -> Html:
    """A sentence in which `code` is marked by backticks."""
    parts = _CODE.split(sentence)
    return joined(tag("code", part) if index % 2 else part for index, part in enumerate(parts))


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """A table whose rows turn into cards on a narrow screen; an empty cell is left out there."""
    named = list(headings)
    head = tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in named)))
    body = tag("tbody", *(tag("tr", *_cells(named, row)) for row in rows))
    return tag("table", head, body)


def _cells(headings: list[str], row: Iterable[object]) -> Iterable[Html]:
    for index, (heading, cell) in enumerate(zip(headings, row, strict=True)):
        if index == 0:
            yield tag("th", cell, scope="row")
        else:
            yield tag("td", cell, data_label=heading)
