"""Writes /.well-known/x402.json: what can be paid for with x402, and how."""

from typing import TYPE_CHECKING

from rest_bridge.discovery import as_json
from rest_bridge.routes import Handler
from rest_bridge.serving import lazy
from toolserver.registry.registry import Registry

if TYPE_CHECKING:
    from toolserver.money.x402.offers import X402Terms
    from toolserver.registry.site_facts import Document

PATH = "/.well-known/x402.json"


def pages(terms: "X402Terms", registry: Registry) -> dict[str, Handler]:
    """Return the handler by path, for a service that accepts x402 payments."""

    def listed() -> "Document":
        from toolserver.money.x402.offers import document

        return as_json(document(terms, list(registry)))

    return {PATH: lazy(listed)}
