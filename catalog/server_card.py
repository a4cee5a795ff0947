"""Writes the server card of the MCP endpoint, and the AI catalogue that leads to it.

A card says what a client needs before it connects; what it then learns from the server itself wins.
"""

import json
from collections.abc import Sequence
from typing import Any

from catalog.server_json import server_json
from toolserver import API_VERSION
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import AI_CATALOG, SERVER_CARD, Document, LazyDocuments, SiteFacts

SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD_TYPE, CATALOG_TYPE = "application/mcp-server-card+json", "application/ai-catalog+json"


def write_card(registry: Registry, facts: SiteFacts, versions: Sequence[str]) -> dict[str, Any]:
    """Return the server card for `versions` of the protocol. It has no tools, since a client chooses what is listed."""
    published = server_json(registry, facts)
    remotes = [{**remote, "supportedProtocolVersions": list(versions)} for remote in published["remotes"]]
    return {
        "$schema": SCHEMA,
        "name": published["name"],
        "version": API_VERSION,
        "title": published["title"],
        "description": published["description"],
        "websiteUrl": published["websiteUrl"],
        "remotes": remotes,
    }


def write_catalog(registry: Registry, facts: SiteFacts) -> dict[str, Any]:
    """Return the AI catalogue: one entry, the MCP server."""
    published = server_json(registry, facts)
    namespace, _, name = published["name"].partition("/")
    entry = {
        "identifier": f"urn:air:{'.'.join(reversed(namespace.split('.')))}:mcp:{name}",
        "type": CARD_TYPE,
        "url": facts.url(SERVER_CARD),
        "displayName": published["title"],
    }
    return {"specVersion": "1.0", "entries": [entry]}


def documents(registry: Registry, facts: SiteFacts, versions: Sequence[str]) -> LazyDocuments:
    """Return both by path."""
    return LazyDocuments(
        {
            SERVER_CARD: lambda: _write(write_card(registry, facts, versions), CARD_TYPE),
            AI_CATALOG: lambda: _write(write_catalog(registry, facts), CATALOG_TYPE),
        }
    )


def _write(value: dict[str, Any], kind: str) -> Document:
    return Document(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), kind)
