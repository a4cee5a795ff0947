"""Colours code: spans of one class for each kind of word, by the patterns of `static/languages.json`.

Scripts colour code that changes in a page by the same patterns.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from rest_bridge.static_files import read_static_files

LANGUAGES = "languages.json"
_ALIASES = {"bash": "sh", "console": "sh", "ini": "toml", "javascript": "js", "typescript": "js", "ts": "js"}


def highlight(code: str, language: str) -> Markup:
    """Return code as HTML with its words marked; of a language without patterns, only escaped."""
    kinds, pattern = _compile_patterns(_ALIASES.get(language, language))
    if pattern is None:
        return Markup(escape(code))  # nosec B704 # everything is escaped
    parts, end = [], 0
    for found in pattern.finditer(code):
        kind = kinds[(found.lastindex or 1) - 1]
        parts += [escape(code[end : found.start()]), f'<span class="code-{kind}">{escape(found[0])}</span>']
        end = found.end()
    return Markup("".join([*parts, escape(code[end:])]))  # nosec B704 # everything is escaped


def highlight_block(code: str, language: str, attributes: str) -> str:
    """Return the inside of a block of code of a Markdown document. The parser adds the rest."""
    return str(highlight(code, language))


@functools.cache
def read_languages() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the patterns: for each language, pairs of a class and a regular expression, the first match counts."""
    languages: dict[str, list[tuple[str, str]]] = json.loads(read_static_files()[LANGUAGES].body)
    return languages


@functools.cache
def _compile_patterns(language: str) -> tuple[list[str], re.Pattern[str] | None]:
    rules = read_languages().get(language, ())
    if not rules:
        return [], None
    return [kind for kind, _ in rules], re.compile("|".join(f"({pattern})" for _, pattern in rules))
