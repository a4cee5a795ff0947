"""Damages rows of a body: JSON, CSV, XML or YAML, one member of some rows, in eight ways."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

KINDS: dict[str, Any] = {
    "missing": None,  # the member itself is gone
    "null": None,
    "string": "n/a or so",
    "nan": float("nan"),
    "object": {"a": 1},
    "empty": "",
    "huge": 1e300,
    "type": [True],
}
WRITTEN = {"null": "null", "string": "n/a or so", "nan": "NaN", "object": "{a:1}", "empty": "", "huge": "1e300"}
ITEM = re.compile(r"<(item|entry|tr|Cube(?= time))\b.*?</\1>", re.DOTALL)

Damage = Callable[[int, str, str], bytes]
"""Damages so many rows' member in one of the ways of KINDS, and returns the body."""


class Rows:
    """The rows of a body, and the members that the first of them has."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.total, self.members = 0, list[str]()

    def damage(self, many: int, member: str, kind: str) -> bytes:
        """The body with one member of so many rows, evenly spread, damaged."""
        raise NotImplementedError

    def chosen(self, many: int) -> list[int]:
        """Positions of rows, neither the first nor the last of several: what is newest there may be judged."""
        inner = range(1, self.total - 1) if self.total > 2 else range(self.total)
        many = min(many, len(inner))
        return sorted({inner[n * len(inner) // many] for n in range(many)})


class JsonRows(Rows):
    """The longest list, or the largest mapping of mappings."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._encoding = json.detect_encoding(body)
        self._text = body.decode(self._encoding)
        whole = json.loads(self._text)
        self._path = max(_lists(whole), key=lambda found: found[0], default=(0, ()))[1]
        self._keys = list(_keys(_at(whole, self._path)))
        self.total = len(self._keys)
        self.members = _members(_at(whole, self._path)[self._keys[self.total // 2]]) if self.total else []

    def damage(self, many: int, member: str, kind: str) -> bytes:
        whole = json.loads(self._text)  # a tenth of the time of a deep copy
        listed = _at(whole, self._path)
        for n in self.chosen(many):
            *way, last = json.loads(member)
            try:
                holder = _at(listed, (self._keys[n], *way)) if way or last != "" else listed
                last = self._keys[n] if not way and last == "" else last
                if kind == "missing" and isinstance(holder, dict):
                    holder.pop(last, None)
                else:
                    holder[last] = KINDS[kind]
            except (KeyError, IndexError, TypeError):
                continue
        return json.dumps(whole).encode(self._encoding)


def _lists(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[int, tuple[Any, ...]]]:
    if isinstance(value, list):
        yield len(value), path
        for n, each in enumerate(value[:3]):
            yield from _lists(each, (*path, n))
    elif isinstance(value, dict):
        if len(value) > 3 and all(isinstance(each, dict | list) for each in value.values()):
            yield len(value), path
        for name, each in list(value.items())[:40]:
            yield from _lists(each, (*path, name))


def _keys(listed: Any) -> Any:
    return range(len(listed)) if isinstance(listed, list) else listed


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _members(row: Any, way: tuple[Any, ...] = ()) -> list[str]:
    """The ways to every member of a row, as JSON."""
    if isinstance(row, dict) and row and len(way) < 4:
        return [found for name, each in row.items() for found in _members(each, (*way, name))]
    if isinstance(row, list) and row and len(way) < 4 and not isinstance(row[0], dict):
        return [found for n, each in enumerate(row[:12]) for found in _members(each, (*way, n))]
    return [json.dumps(way or ("",))]


class LineRows(Rows):
    """Lines of cells after a header, or lines of `key: value`."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        text = body.decode("utf-8-sig")
        self._ends = "\r\n" if "\r\n" in text else "\n"
        self._lines = text.split(self._ends)
        self._mark = next((mark for mark in ("|", ",", ": ") if mark in self._lines[len(self._lines) // 2]), ",")
        self._at = [n for n, line in enumerate(self._lines) if n and line.strip() and not line.startswith("#")]
        self.total = len(self._at)
        cells = self._lines[self._at[self.total // 2]].split(self._mark)
        self.members = ["1"] if self._mark == ": " else [str(n) for n in range(len(cells))]

    def damage(self, many: int, member: str, kind: str) -> bytes:
        lines = list(self._lines)
        for n in self.chosen(many):
            cells = lines[self._at[n]].split(self._mark)
            if int(member) < len(cells):
                cells[int(member) :][:1] = []
                written = [] if kind == "missing" else [WRITTEN.get(kind, "[True]")]
                before, after = cells[: int(member)], cells[int(member) + 1 :]
                lines[self._at[n]] = self._mark.join([*before, *written, *after])
        return self._ends.join(lines).encode()


class XmlRows(Rows):
    """Items of a feed, each with its elements; where they have no text, with their attributes."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._encoding = "iso-8859-1" if b"ISO-8859-1" in body[:100] else "utf-8"
        self._text = body.decode(self._encoding)
        self._items = list(ITEM.finditer(self._text))
        self.total = len(self._items)
        first = self._items[0][0] if self._items else ""
        elements = re.findall(r"<([\w:]+)[^>/]*>[^<]*</", first)
        self.members = sorted(set(elements or re.findall(r"\s\w+(?==)", first)))

    def damage(self, many: int, member: str, kind: str) -> bytes:
        chosen = {self._items[n].start() for n in self.chosen(many)}
        attribute = rf"({member}=[\"'])[^\"']*([\"'])"
        text = rf"(<{member}[^>]*>)(?:<!\[CDATA\[.*?\]\]>|[^<]*)(</{member}>)"
        element = re.compile(attribute if member[0] == " " else text, re.DOTALL)

        def item(found: re.Match[str]) -> str:
            if found.start() not in chosen:
                return found[0]
            if kind == "missing":
                return element.sub("", found[0])
            return element.sub(lambda part: part[1] + WRITTEN.get(kind, "[True]") + part[2], found[0])

        return ITEM.sub(item, self._text).encode(self._encoding)


def rows_of(body: bytes) -> Rows:
    """The rows of a body of any of these formats."""
    start = body.lstrip(b"\xef\xbb\xbf\xfe\xff\0 \r\n\t")[:1]
    if start in (b"{", b"["):
        return JsonRows(body)
    return XmlRows(body) if start == b"<" else LineRows(body)
