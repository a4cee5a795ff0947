"""/changelog: CHANGELOG.md for people and, by Accept, as it is."""

from rest_bridge.pages import markdown
from rest_bridge.pages.layout import page
from toolserver.documents import MARKDOWN, Document, Facts
from toolserver.registry import Registry


def changelog(registry: Registry, facts: Facts, source: str) -> Document:
    return page(registry, facts, "/changelog", "Changelog", markdown.html(source), markdown="/changelog.md")


def changelog_markdown(source: str) -> Document:
    return Document(source.encode(), MARKDOWN)
