"""Writes the body of a rejected call: problem+json for programs, a page for people."""

from rest_bridge import headers as h
from rest_bridge.asgi import Header, Scope
from rest_bridge.pages.failure import failure_page, is_for_people
from rest_bridge.serving import PAGE_POLICY
from toolserver.calls.response import json_bytes
from toolserver.errors import CallRejected
from toolserver.money.x402.headers import REQUIRED, offer_version_1, unheader
from toolserver.registry import error_codes
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts


class RejectionWriter:
    """Writes the failure bodies of one server."""

    def __init__(self, registry: Registry, facts: SiteFacts) -> None:
        self._registry, self._facts = registry, facts

    def write(self, scope: Scope, rejected: CallRejected, request_id: str) -> tuple[bytes, list[Header]]:
        """Return the body and the headers that depend on its form. Payment failures follow the specification."""
        told = error_codes.body(
            rejected.code, rejected.detail, facts=self._facts, request_id=request_id, **rejected.extra
        )
        if (offer := rejected.headers.get(REQUIRED)) is not None:
            told |= offer_version_1(unheader(offer))
        if rejected.status != 402 and is_for_people(scope):
            page = failure_page(self._registry, self._facts, told)
            return page.body, [(b"content-type", page.content_type.encode()), PAGE_POLICY]
        return json_bytes(told), [h.PROBLEM_TYPE]
