"""Writes server.json, with which the MCP registry lists this service.

The format is the registry's schema of 2025-12-11.
"""

from typing import Any
from urllib.parse import urlsplit

from toolserver import __version__
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import DISTRIBUTION, SERVICE, SiteFacts, sells

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_TOKEN = "A token (svc_live_…) pays for premium tools; the free ones need none"


def server_json(
    registry: Registry, facts: SiteFacts, *, name: str | None = None, package: bool = False
) -> dict[str, Any]:
    """Return the document. `name` is `<namespace>/<server>`; by default the namespace is the reversed host name.

    With `package` it also lists the distribution, as a bridge to this service. The registry
    accepts that only from the owners of the distribution on the package index, whose README
    must contain `mcp-name: <name>`.
    """
    paid = sells(registry)
    secret = {"description": _TOKEN, "isSecret": True}
    header = {"headers": [{"name": "Authorization", "value": "Bearer {token}", "variables": {"token": secret}}]}
    return {
        "$schema": SCHEMA,
        "name": name or f"{'.'.join(reversed(_host(facts).split('.')))}/{SERVICE}",
        "title": "Live data for agents",
        "description": "Typed tools with live data: markets, news, weather, earthquakes, outages",
        "version": __version__,
        "websiteUrl": facts.url("/"),
        "remotes": [{"type": "streamable-http", "url": facts.url("/api/mcp"), **(header if paid else {})}],
        **(
            {"packages": [_package(facts, {"name": "TOOLSERVER_TOKEN", **secret} if paid else None)]} if package else {}
        ),
    }


def _package(facts: SiteFacts, secret: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "registryType": "pypi",
        "identifier": DISTRIBUTION,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "positional", "value": "stdio"},
            {"type": "named", "name": "--server", "value": facts.url("")},
        ],
        **({"environmentVariables": [secret]} if secret else {}),
    }


def _host(facts: SiteFacts) -> str:
    return urlsplit(facts.base_url).hostname or ""
