"""Writes /changelog: deprecations and CHANGELOG.md, as a page for people and as Markdown on request."""

from collections.abc import Sequence

from rest_bridge.pages.folding import fold_changes
from rest_bridge.pages.render import markdown_to_html, render_page
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, write_table
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import MARKDOWN, Document, SiteFacts


def changelog(registry: Registry, facts: SiteFacts, source: str) -> Document:
    """Return the page for people."""
    return render_page(
        "markdown.html",
        registry,
        facts,
        path="/changelog",
        title="Changelog",
        markdown_path="/changelog.md",
        text=markdown_to_html(_with_deprecations(source), fold_changes),
    )


def changelog_markdown(source: str, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> Document:
    """Return the changelog as Markdown."""
    return Document(_with_deprecations(source, deprecations).encode(), MARKDOWN)


def _with_deprecations(source: str, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> str:
    """Return the file with the deprecations before its first version."""
    head, mark, rest = source.partition("## [")
    return head + write_table(deprecations) + mark + rest
