"""Writes /changelog: deprecations and what changed for users, as a page and as Markdown; and the code's history."""

import re
from collections.abc import Sequence

from rest_bridge.pages.folding import fold_changes
from rest_bridge.pages.render import markdown_to_html, render_page
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, write_table
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import CODE_HISTORY, MARKDOWN, Document, SiteFacts


def changelog(registry: Registry, facts: SiteFacts, source: str) -> Document:
    """Return the page for people."""
    return render_page(
        "markdown.html",
        registry,
        facts,
        path="/changelog",
        title="Changelog",
        markdown_path="/changelog.md",
        text=markdown_to_html(_lead_link(_with_deprecations(source), facts), fold_changes),
    )


def code_history(registry: Registry, facts: SiteFacts, source: str) -> Document:
    """Return the history of the code as a page."""
    return render_page(
        "markdown.html",
        registry,
        facts,
        path=CODE_HISTORY,
        title="History of the code",
        text=markdown_to_html(source, fold_changes),
    )


def changelog_markdown(source: str, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> Document:
    """Return the changelog as Markdown."""
    return Document(_with_deprecations(source, deprecations).encode(), MARKDOWN)


def _lead_link(source: str, facts: SiteFacts) -> str:
    """Return the text with its link to the file of the history leading to the page."""
    return source.replace("(../CHANGELOG.md)", f"({facts.url(CODE_HISTORY)})")


def _with_deprecations(source: str, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> str:
    """Return the file with the deprecations before its first part."""
    begin = re.search(r"^## ", source, re.MULTILINE)
    at = begin.start() if begin is not None else len(source)
    return source[:at] + write_table(deprecations) + source[at:]
