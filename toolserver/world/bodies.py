"""Read and rewrite upstream bodies of every format without losing their encoding."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

Change = Callable[[float, str], float]
"""Changes a number, given the name of the member that holds it ("" if there is none)."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
HEX = re.compile(r"0x[0-9a-fA-F]{1,18}")  # a quantity; hashes and addresses are longer
_WORDS = re.compile(r"0x([0-9a-fA-F]{64}){2,}")  # what a contract call returns
_WORD = re.compile(r"[0-9a-fA-F]{64}")
_IN_TEXT = re.compile(r"(?:(?<=[,|;\t \"'\n\r])|^)[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[,|;\t \"'\n\r]|$)")
_IN_MARKUP = re.compile(r"(?<=>)\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*(?=<)|(?<==[\"'])[+-]?\d+(?:\.\d+)?(?=[\"'])")
_ITEM = re.compile(r"<(item|entry)[\s>].*?</\1>", re.DOTALL)
_ROOT = re.compile(r"\A(.*?<([A-Za-z][\w:.-]*)(?:\s[^>]*)?>).*", re.DOTALL)
_BOMS = [(codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")]


class NotJson(ValueError):
    """The body is not JSON."""


def load(body: bytes) -> tuple[Any, Callable[[Any], bytes]]:
    """Return the JSON value of a body and a function that writes another value in the same encoding.

    Raises:
        NotJson: the body is not JSON.
    """
    bom, encoding = next(((b, e) for b, e in _BOMS if body.startswith(b)), (b"", "utf-8"))
    try:
        value = json.loads(body[len(bom) :].decode(encoding.removesuffix("-sig")))
    except ValueError:
        raise NotJson from None

    def dump(new: Any) -> bytes:
        return bom + compact(new).encode(encoding.removesuffix("-sig"))

    return value, dump


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_markup(text: str) -> bool:
    return text.lstrip("\ufeffï»¿ \r\n\t").startswith("<")


def change_numbers(body: bytes, change: Change) -> bytes:
    """Apply a change to every number of a body: JSON (also inside strings), XML, HTML, tables and lists."""
    try:
        value, dump = load(body)
    except NotJson:
        text = body.decode("latin-1")  # keeps every byte of any encoding that extends ASCII
        if not is_markup(text):
            return _IN_TEXT.sub(lambda m: _written(m[0], change, ""), text).encode("latin-1")
        head, rest = _declaration(text)
        return (head + _IN_MARKUP.sub(lambda m: _written(m[0], change, ""), rest)).encode("latin-1")
    return dump(_walk(value, change, ""))


def _declaration(text: str) -> tuple[str, str]:
    """Return `<?xml version="1.0"?>` and what follows it."""
    head, mark, rest = text.partition("?>")
    return (head + mark, rest) if mark else ("", text)


def _walk(value: Any, change: Change, name: str) -> Any:
    if isinstance(value, dict):
        return {k: _walk(v, change, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_walk(v, change, name) for v in value]
    if isinstance(value, str):
        return _string(value, change, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    new = change(value, name)
    return round(new) if isinstance(value, int) else float(new)


def _string(value: str, change: Change, name: str) -> str:
    if NUMBER.fullmatch(value):
        return _written(value, change, name)
    if HEX.fullmatch(value):
        return hex(max(0, round(change(int(value, 16), name))))
    if name == "result" and _WORDS.fullmatch(value):
        return "0x" + _WORD.sub(lambda word: f"{_whole(int(word[0], 16), change, name):064x}", value[2:])
    if value[:1] in ("[", "{"):  # JSON inside a string
        try:
            return compact(_walk(json.loads(value), change, name))
        except ValueError:
            return value
    return value


def _whole(value: int, change: Change, name: str) -> int:
    """Return a word of a contract's answer; unchanged stays exact, never negative, never longer than a word."""
    new = change(value, name)
    return value if new == float(value) else min(max(0, round(new)), 2**256 - 1)


def _written(number: str, change: Change, name: str) -> str:
    """Write the changed number with as many decimals as before."""
    bare = number.strip()
    new = change(float(bare), name)
    if new == float(bare):
        return number
    if "e" in bare.lower():
        return number.replace(bare, repr(float(new)))
    return number.replace(bare, f"{new:.{len(bare.partition('.')[2])}f}")


def empty_body(body: bytes) -> bytes:
    """Return a valid envelope with no content: lists without items, tables without rows, feeds without entries."""
    try:
        value, dump = load(body)
    except NotJson:
        text = body.decode("latin-1")
        return (_markup_emptied(text) if is_markup(text) else _table_emptied(text)).encode("latin-1")
    empty = _without_items(value)
    if empty == value:  # nothing to empty: it contains no list
        empty = {} if isinstance(value, dict) else value if isinstance(value, list) else None
    return dump(empty)


def _without_items(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_items(v) for k, v in value.items()}
    return [] if isinstance(value, list) else value


def _markup_emptied(text: str) -> str:
    without_items, removed = _ITEM.subn("", text)
    if removed:
        return without_items
    head, rest = _declaration(text)
    root = _ROOT.match(rest)
    return f"{head}{root[1]}</{root[2]}>" if root else text


def _table_emptied(text: str) -> str:
    lines = text.splitlines(keepends=True)
    head, row = header_of(lines)
    return "".join(head) + (row or "")


def header_of(lines: list[str]) -> tuple[list[str], str | None]:
    """Return the comment lines at the start of a table, and its header row if it has one."""
    count = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if count == len(lines):
        return lines, None
    row = lines[count]
    cells = [cell.strip(" \"'\r\n") for cell in re.split(r"[,|;\t]", row)]
    named = len(cells) > 1 and not cells[0][:1].isdigit() and not any(NUMBER.fullmatch(cell) for cell in cells)
    return lines[:count], row if named else None


def columns_moved(body: bytes) -> bytes:
    """Move the first CSV column to the end and add a column; return a table without a header row unchanged."""
    text = body.decode("latin-1")
    lines = text.splitlines(keepends=True)
    comments, header = header_of(lines)
    if header is None or "," not in header:
        return body
    end = "\r\n" if header.endswith("\r\n") else "\n"
    rows = list(csv.reader(io.StringIO("".join(lines[len(comments) :]))))
    out = io.StringIO()
    write = csv.writer(out, lineterminator=end).writerow
    for i, row in enumerate(rows):
        write([*row[1:], *row[:1], "added" if i == 0 else ""] if row else row)
    return ("".join(comments) + out.getvalue()).encode("latin-1")


def member_added(body: bytes) -> bytes:
    """Return the feed with one unknown element added to each item."""
    text = body.decode("latin-1")
    return re.sub(r"</(item|entry)>", r'<added xmlns="urn:example:added">new</added></\1>', text).encode("latin-1")
