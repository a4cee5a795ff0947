"""Writes the views of MCP Apps: one HTML page a tool, which draws its results in a host's frame and loads nothing.

A view is made of the scripts and the style that pages have, so drawing code stands once: the
modules are put one after the other, each a function of its own whose imports are its
neighbours. Rules of the style sheet that a view cannot match are left out, and so are modules
for kinds of pictures that its tool does not have. The address of a view has the digest of its
text, because hosts keep what they have read.
"""

import base64
import functools
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from html import escape
from typing import Any

from rest_bridge.pages.modules import IMPORT, read_module
from rest_bridge.pages.style_sheet import choose_sections
from rest_bridge.static_files import read_static_files
from toolserver import API_VERSION
from toolserver.registry.display import PictureKind
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import BUY, RECEIPTS, SiteFacts

SCHEME = "ui://toolserver/"
_ENTRY = "view.js"
_INSTEAD = {"series.js": "lines.js"}  # the chart library of pages is larger than a view may be
_DRAWN_BY: Mapping[PictureKind, str] = {"series": "lines.js", "text": "prompt.js"}  # others are named for the kind
_SECTIONS = ("Every page", "text", "controls", "tables", "cards", "maps", "pictures", "the page of a tool")
_LATER = re.compile(r'\(await import\("\./([\w.]+)"\)\)')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*?(?s:.*?)\*/)\n", re.MULTILINE)
_INDENT = re.compile(r"^ +", re.MULTILINE)
_LONG_TEXT = re.compile(r'"([^"]{1000,})"')
_SPACE = re.compile(r"\s*([:;])\s+")
_RULE = re.compile(r"(?P<selectors>[^{}]+)\{(?P<inside>(?:[^{}]|\{[^{}]*\})*)\}")
_NOT_NAMED = re.compile(r":[\w-]+(?:\([^)]*\))?|\[[^\]]*\]")  # states of an element, and values of its attributes
_NAME = re.compile(r"[\w-]+")
_TEXT = re.compile(r'"([^"\n]*)"|`([^`]*)`|<(\w+)')
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="view">
<main>
<h1>{title}</h1>
<div id="shown" aria-live="polite"><p class="soft">Waiting for the answer …</p></div>
</main>
<script type="application/json" id="tool">{tool}</script>
<script type="module">
{script}</script>
</body>
</html>
"""


class Views:
    """The views of one server's tools, each written when it is first asked for."""

    def __init__(self, registry: Registry, facts: SiteFacts) -> None:
        self._facts = facts
        self._tools = {operation.name: operation for operation in registry if has_view(operation)}
        self._written: dict[str, str] = {}

    def find_address(self, name: str) -> str | None:
        """Return the URI of the view of a tool; None for a tool without one."""
        return None if name not in self._tools else f"{SCHEME}{name}.{_digest(self._write(name))}.html"

    def read(self, uri: str) -> str | None:
        """Return the HTML at a URI, or None. An older digest gets today's view, which draws the same answers."""
        name = uri.removeprefix(SCHEME).partition(".")[0]
        return self._write(name) if uri.startswith(SCHEME) and name in self._tools else None

    def _write(self, name: str) -> str:
        if name not in self._written:
            self._written[name] = write_view(self._tools[name], self._facts)
        return self._written[name]


def has_view(operation: Operation) -> bool:
    """Return True for a tool whose answers have something to draw, and which only reads."""
    return operation.reads_only and bool(operation.pictures or operation.headline)


def write_view(operation: Operation, facts: SiteFacts) -> str:
    """Return the view of a tool as HTML."""
    drawers = {_DRAWN_BY.get(picture.kind, f"{picture.kind}.js") for picture in operation.pictures}
    script, style = _link(tuple(sorted(drawers)))
    written = json.dumps(_describe(operation, facts), ensure_ascii=False, separators=(",", ":"))
    tool = written.replace("<", r"\u003c")
    return _PAGE.format(title=escape(operation.title), style=style, tool=tool, script=script)


def _describe(operation: Operation, facts: SiteFacts) -> dict[str, Any]:
    """Return what the script of a view needs to know about its tool."""
    shown = operation.headline
    return {
        "name": operation.name,
        "title": operation.title,
        "version": API_VERSION,
        "enveloped": operation.enveloped,
        "free": operation.tier is Tier.FREE,
        "credits": operation.credits,
        "value": shown.value if shown else None,
        "unit": shown.unit if shown else "",
        "note": shown.note if shown else "",
        "change": shown.change if shown else "",
        "pictures": [asdict(picture) for picture in operation.pictures],
        "buy": facts.url(BUY),
        "receipts": facts.url(RECEIPTS),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@functools.cache
def _link(drawers: tuple[str, ...]) -> tuple[str, str]:
    """Return the script of a view that draws with these modules, and the style that it can match."""
    order: dict[str, str] = {}
    for module in (*drawers, _ENTRY):
        _add_module(module, order)
    script = "const modules = {};\n" + "".join(order.values())
    words = frozenset(_NAME.findall(" ".join(" ".join(found) for found in _TEXT.findall(_PAGE + script))))
    rules = choose_sections(_SECTIONS) + _COMMENT.sub("", _read("css/view.css"))
    return script, "".join(_select_rules(rules, words))


def _add_module(name: str, order: dict[str, str]) -> None:
    """Add a module to those in `order`, after the modules that it imports."""
    text = read_module(name)
    for imported in IMPORT.finditer(text):
        if (module := _INSTEAD.get(imported["module"], imported["module"])) not in order:
            _add_module(module, order)
    if name not in order:
        order[name] = _wrap(name, text)


def _wrap(name: str, text: str) -> str:
    """Return a module as a function that is called at once and returns what it exports."""
    text = IMPORT.sub(lambda found: f'const {{ {found["names"]} }} = modules["{found["module"]}"];\n', text)
    text = _LATER.sub(lambda found: f'modules["{_INSTEAD.get(found[1], found[1])}"]', text)
    exported = ", ".join(_EXPORT.findall(text))
    body = _INDENT.sub("", _COMMENT.sub("", _EXPORT.sub("", text))).strip()
    body = _LONG_TEXT.sub(_deflate, body)
    return f'modules["{name}"] = await (async () => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'


def _deflate(text: re.Match[str]) -> str:
    """Return an expression for a long text, the coastline: its coordinates take a third of the bytes."""
    packed = base64.b64encode(zlib.compress(text[1].encode(), 9)).decode()
    unpacked = f'new Blob([Uint8Array.from(atob("{packed}"), (one) => one.charCodeAt(0))]).stream()'
    return f'await new Response({unpacked}.pipeThrough(new DecompressionStream("deflate"))).text()'


def _select_rules(style: str, words: frozenset[str]) -> Iterator[str]:
    """Yield the rules of a style sheet with a selector whose names are all among the words, each as one line."""
    for rule in _RULE.finditer(style):
        selectors, inside = rule["selectors"].strip(), rule["inside"].strip()
        if selectors.startswith("@media"):
            if chosen := "".join(_select_rules(inside, words)):
                yield f"{selectors}{{\n{chosen}}}\n"
        elif any(_can_match(selector, words) for selector in selectors.split(",")):
            yield f"{selectors}{{{_SPACE.sub(lambda found: found[1], inside)}}}\n"


def _can_match(selector: str, words: frozenset[str]) -> bool:
    """Return True if each name in a selector is among the words, or begins with one that ends in a hyphen."""
    names = _NAME.findall(_NOT_NAMED.sub("", selector))
    return all(name in words or f"{name.partition('-')[0]}-" in words for name in names)


def _read(name: str) -> str:
    return read_static_files()[name].body.decode()
