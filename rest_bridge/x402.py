"""/.well-known/x402.json: what can be paid for by x402, and how."""

from typing import TYPE_CHECKING

from rest_bridge.discovery import as_json
from rest_bridge.face import Handler
from rest_bridge.serving import lazy
from toolserver.registry import Registry

if TYPE_CHECKING:
    from toolserver.documents import Document
    from toolserver.payments.x402.offers import Terms

PATH = "/.well-known/x402.json"


def pages(terms: "Terms", registry: Registry) -> dict[str, Handler]:
    """The handler by path, for a service that takes such payments."""

    def listed() -> "Document":
        from toolserver.payments.x402.offers import document

        return as_json(document(terms, list(registry)))

    return {PATH: lazy(listed)}
