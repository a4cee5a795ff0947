"""A page written once: as HTML for people, and as Markdown, with the same facts, for agents.

Sentences may hold `code`, **bold** and [links](https://…), as in Markdown.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rest_bridge.pages.html import Html, table, tag
from rest_bridge.pages.markdown import inline


class Heading(NamedTuple):
    """A heading below the title. `level` is 2 or 3."""

    words: str
    level: int = 2


class Words(NamedTuple):
    """A paragraph; the first one of a page leads it."""

    text: str
    lead: bool = False


class Points(NamedTuple):
    """A list."""

    items: tuple[str, ...]


class Rows(NamedTuple):
    """A table."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Code(NamedTuple):
    """Lines to copy."""

    text: str
    language: str = "sh"


Block = Heading | Words | Points | Rows | Code


def as_html(title: str, blocks: Iterable[Block]) -> Iterator[Html]:
    """The content of the page."""
    yield tag("h1", inline(title))
    for block in blocks:
        match block:
            case Heading(words, level):
                yield tag(f"h{level}", inline(words))
            case Words(text, lead):
                yield tag("p", inline(text), class_="lead" if lead else None)
            case Points(items):
                yield tag("ul", *(tag("li", inline(item)) for item in items))
            case Rows(headings, rows):
                yield table(headings, (map(inline, row) for row in rows))
            case Code(text):
                yield tag("pre", tag("code", text))


def as_markdown(title: str, blocks: Iterable[Block]) -> str:
    """The same as a document of its own."""
    return "\n\n".join([f"# {title}", *map(_markdown, blocks)]) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(words, level):
            return f"{'#' * level} {words}"
        case Words(text):
            return text
        case Points(items):
            return "\n".join(f"- {item}" for item in items)
        case Rows(headings, rows):
            return "\n".join(_line(row) for row in (headings, ("---",) * len(headings), *rows))
        case Code(text, language):
            return f"```{language}\n{text}\n```"


def _line(cells: tuple[str, ...]) -> str:
    return "|" + "|".join(f" {cell.replace('|', chr(92) + '|')} " for cell in cells) + "|"
