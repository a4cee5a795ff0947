"""The documents of a registry, for tests: made as the service makes them, with one changelog."""

import pytest

from catalog.hosts import snippets
from rest_bridge.documents import documents
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import AI_CATALOG, NO_CHARGE, RECEIPT_KEYS, SERVER_CARD

PROJECT = Registry.load("tools")
CHANGES = """\
# Changelog

## [Unreleased]

### Added

- `sights`: <new>
  and high
- **more** at [the page](https://more.example/)
"""
BY_OTHERS = {
    "/api/llm-tools",
    "/api/mcp",
    "/readyz",
    "/livez",
    "/healthz/ledger",
    "/live.json",
    SERVER_CARD,
    AI_CATALOG,
    "/front.html",
    RECEIPT_KEYS,
    NO_CHARGE,
}  # answered by the application itself
BY_OTHERS |= {"/status", "/status.json", "/status.atom", "/sources"}

registries = pytest.mark.parametrize("registry", [TINY, FREE, PROJECT], ids=["tiny", "free", "project"])


def made(registry, facts=FACTS):
    return documents(registry, facts, snippets=snippets(facts), changes=CHANGES)


def html_pages(registry, facts=FACTS):
    found = made(registry, facts)
    return {path: Page(d.body) for path, d in found.items() if d.content_type.startswith("text/html")}
