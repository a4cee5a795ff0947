"""The part of Markdown that a changelog is written in, as HTML: headings, lists, paragraphs, code, links, bold."""

import re
from collections.abc import Iterator

from rest_bridge.pages.html import Html, joined, tag

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https?://[^)\s]+)\)")
_HEADING = re.compile(r"(#{1,4})\s+(.*)")
_ITEM = re.compile(r"[-*]\s+(.*)")


def html(source: str) -> Html:
    """The document as markup. What is not understood stands there as it was written."""
    return joined(_blocks(source))


def _blocks(source: str) -> Iterator[Html]:
    for block in re.split(r"\n{2,}", source.strip()):
        yield from _block(block.split("\n"))


def _block(lines: list[str]) -> Iterator[Html]:
    """Headings first, then either a list or a paragraph."""
    while lines and (heading := _HEADING.fullmatch(lines[0])):
        yield tag(f"h{len(heading[1])}", inline(heading[2]))
        lines = lines[1:]
    if lines and _ITEM.fullmatch(lines[0]):
        yield tag("ul", *(tag("li", inline(item)) for item in _items(lines)))
    elif lines:
        yield tag("p", inline(" ".join(line.strip() for line in lines)))


def _items(lines: list[str]) -> list[str]:
    """List items; a line that does not start one belongs to the one before."""
    items: list[str] = []
    for line in lines:
        if found := _ITEM.fullmatch(line):
            items.append(found[1])
        else:
            items[-1] += f" {line.strip()}"
    return items


def inline(sentence: str) -> Html:
    """`code`, **bold** and links; everything else escaped."""
    parts: list[object] = []
    end = 0
    for found in _INLINE.finditer(sentence):
        parts += [sentence[end : found.start()], _marked(found)]
        end = found.end()
    return joined([*parts, sentence[end:]])


def _marked(found: re.Match[str]) -> Html:
    code, bold, words, address = found.groups()
    if code:
        return tag("code", code)
    return tag("strong", bold) if bold else tag("a", words, href=address)
