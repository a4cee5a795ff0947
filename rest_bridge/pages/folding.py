"""Folds long parts of a document until a reader opens them: the rows of long tables, and older changes."""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when the first page is made
    from markdown_it.token import Token

MANY = 40  # if all tables of a document together have more rows than this,
MOST_ROWS = 7  # each table with more rows than this is folded
ROWS = 20  # into parts of at most this many rows
NEWEST = 6  # entries per section of the newest release that are not folded

_CODE = re.compile(r"`([^`]*)`")


def fold_tables(tokens: "Sequence[Token]") -> "list[Token]":
    """Return the tokens of a document with long tables folded into parts, named by their first and last row.

    A document with few rows in total is not changed.
    """
    rows = sum(token.type == "tr_open" for token in tokens) - sum(token.type == "thead_open" for token in tokens)
    return list(tokens if rows <= MANY else _fold_blocks(tokens, "table", _fold_table))


def fold_changes(tokens: "Sequence[Token]") -> "list[Token]":
    """Return the tokens of a changelog with all but the newest entries of its newest release folded.

    A release is a level 2 heading in brackets. The part before the first release is not changed.
    """
    releases = [at for at in range(len(tokens)) if _begins_release(tokens, at)]
    head, *parts = _split(tokens, releases)
    folded = list(head)
    for number, release in enumerate(parts):
        folded += _fold_blocks(release, "bullet_list", _fold_list) if number == 0 else _fold_release(release)
    return folded


def _fold_blocks(
    tokens: "Sequence[Token]", kind: str, fold: "Callable[[Sequence[Token]], Iterator[Token]]"
) -> "Iterator[Token]":
    """Yield the tokens, with each outermost block of a kind replaced by the result of `fold`."""
    start = 0
    for at, token in enumerate(tokens):
        if token.level or token.type not in (f"{kind}_open", f"{kind}_close"):
            continue
        end = at + (token.nesting == -1)
        block = tokens[start:end]
        yield from fold(block) if token.nesting == -1 else block
        start = end
    yield from tokens[start:]


def _fold_table(table: "Sequence[Token]") -> "Iterator[Token]":
    body = next((at for at, token in enumerate(table) if token.type == "tbody_open"), len(table))
    head, *rows = _split(table[:-2], [at for at in range(body, len(table)) if table[at].type == "tr_open"])
    if len(rows) <= MOST_ROWS:
        yield from table
        return
    size = ceil(len(rows) / ceil(len(rows) / ROWS))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        words = f'{_name_row(part[0])} to {_name_row(part[-1])} <span class="soft small">{len(part)}</span>'
        yield _write(f'<details class="rows"><summary>{words}</summary>')
        yield from (*head, *(token for row in part for token in row), *table[-2:])
        yield _write("</details>")


def _name_row(row: "Sequence[Token]") -> str:
    """Return the name of a row: the first inline code of its first cell, or the whole cell."""
    content = next(token.content for token in row if token.type == "inline")
    code = _CODE.search(content)
    return escape(code[1] if code else content)


def _begins_release(tokens: "Sequence[Token]", at: int) -> bool:
    return tokens[at].type == "heading_open" and tokens[at].tag == "h2" and tokens[at + 1].content.startswith("[")


def _fold_release(release: "Sequence[Token]") -> "Iterator[Token]":
    yield from (_write("<details><summary>"), *release[:3], _write("</summary>"), *release[3:], _write("</details>"))


def _fold_list(entries: "Sequence[Token]") -> "Iterator[Token]":
    starts = [at for at, token in enumerate(entries) if token.type == "list_item_open" and token.level == 1]
    if len(starts) <= NEWEST:
        yield from entries
        return
    newest, older = _split(entries, [starts[NEWEST]])
    opened, closed = entries[0], entries[-1]
    yield from (*newest, closed, _write(f"<details><summary>{len(starts) - NEWEST} more</summary>"))
    yield from (opened, *older, _write("</details>"))


def _split(tokens: "Sequence[Token]", starts: Sequence[int]) -> "list[Sequence[Token]]":
    """Split the tokens at `starts`: the part before the first start, then a part from each start."""
    edges = [0, *starts, len(tokens)]
    return [tokens[start:end] for start, end in pairwise(edges)]


def _write(markup: str) -> "Token":
    from markdown_it.token import Token

    return Token("html_block", "", 0, content=markup)
