"""Writes /changelog: deprecations and what changed for users, as a page and as Markdown; and the code's history."""

import re
from collections.abc import Collection, Sequence

from rest_bridge.pages.folding import fold_changes
from rest_bridge.pages.render import markdown_to_html, render_page
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, write_table
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import CODE_HISTORY, MARKDOWN, Document, SiteFacts

_FILE_LINK = re.compile(r"\[([^\]]*)\]\((\.\./CHANGELOG|[\w-]+)\.md((?:#[\w-]+)?)\)")


def changelog(registry: Registry, facts: SiteFacts, source: str, guides: Collection[str] = ()) -> Document:
    """Return the page for people. `guides` names the documents that have a page, to which links between files lead."""
    return render_page(
        "markdown.html",
        registry,
        facts,
        path="/changelog",
        title="Changelog",
        markdown_path="/changelog.md",
        text=markdown_to_html(_lead_links(_with_deprecations(source), facts, guides), fold_changes),
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


def _lead_links(source: str, facts: SiteFacts, guides: Collection[str]) -> str:
    """Return the text with links to the pages of files in place of those to files; without a page, words remain."""

    def lead(found: re.Match[str]) -> str:
        words, name, fragment = found.groups()
        page = CODE_HISTORY if name == "../CHANGELOG" else f"/docs/{name}" if name in guides else None
        return f"[{words}]({facts.url(page)}{fragment})" if page else words

    return _FILE_LINK.sub(lead, source)


def _with_deprecations(source: str, deprecations: Sequence[Deprecation] = DEPRECATIONS) -> str:
    """Return the file with the deprecations before its first part."""
    begin = re.search(r"^## ", source, re.MULTILINE)
    at = begin.start() if begin is not None else len(source)
    return source[:at] + write_table(deprecations) + source[at:]
