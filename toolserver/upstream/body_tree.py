"""Reads JSON, XML and tables into dicts, lists and scalars, so that their fields can be listed and removed.

An XML element becomes {"@attribute": text, "tag": [elements], "#text": text}, a table with a header row a list of rows.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from toolserver.core.plain_xml import read_xml

Kind = Literal["json", "xml", "table"]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w .()/%-]*")


class BodyTree(NamedTuple):
    """A body as a value, and a function that writes another value in the same form."""

    kind: Kind
    value: Any
    write: Callable[[Any], bytes]


def read_body_tree(body: bytes) -> BodyTree | None:
    """Return the tree of a body, or None for anything else: a page, a list of lines, a picture."""
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return _read_json(text)
    if text[:1] == b"<":
        return _read_xml(text)
    return _read_table(body)


def _read_json(text: bytes) -> BodyTree | None:
    try:
        return BodyTree("json", json.loads(text), lambda value: json.dumps(value, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        return None


def _read_xml(text: bytes) -> BodyTree | None:
    try:
        root = read_xml(text)
    except (ParseError, LookupError, ValueError):
        return None
    if root.tag.lower() == "html":
        return None

    def write(value: Any) -> bytes:
        new = Element(root.tag)
        _fill(new, value[root.tag])
        written: bytes = tostring(new, encoding="utf-8", xml_declaration=True)
        return written

    return BodyTree("xml", {root.tag: _value_of(root)}, write)


def _value_of(element: Element) -> dict[str, Any]:
    value: dict[str, Any] = {f"@{name}": text for name, text in element.attrib.items()}
    if element.text and element.text.strip():
        value["#text"] = element.text
    for child in element:
        value.setdefault(child.tag, []).append(_value_of(child))
    return value


def _fill(element: Element, value: dict[str, Any]) -> None:
    for name, part in value.items():
        if name == "#text":
            element.text = part
        elif name.startswith("@"):
            element.set(name[1:], part)
        else:
            for each in part:
                _fill(SubElement(element, name), each)


def _read_table(body: bytes) -> BodyTree | None:
    """Read a table whose first line, after comments, names at least two columns."""
    try:
        lines = body.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    start = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    if not lines or len(lines) < start + 2:
        return None
    mark = max(",;|\t", key=lines[start].count)
    names, *rows = csv.reader(lines[start:], delimiter=mark)
    if len(names) < 2 or not all(_NAME.fullmatch(name.strip(" \"'")) for name in names):
        return None

    def write(value: Any) -> bytes:
        columns = list(value[0]) if value else names
        out = io.StringIO()
        table = csv.writer(out, delimiter=mark, lineterminator="\n")
        table.writerow(columns)
        table.writerows([row.get(name, "") for name in columns] for row in value)
        return ("".join(lines[:start]) + out.getvalue()).encode()

    return BodyTree("table", [dict(zip(names, row, strict=False)) for row in rows if row], write)


def kind_of(value: Any, tree: Kind) -> str:
    """Return the JSON type of a value; strings in XML and tables that are numbers count as numbers."""
    if isinstance(value, str):
        return "number" if tree != "json" and _NUMBER.fullmatch(value.strip()) else "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "number"
