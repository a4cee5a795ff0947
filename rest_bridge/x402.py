"""Serves what belongs to x402 besides the calls: the list of what can be paid for, and top-ups of a followed ledger."""

from typing import TYPE_CHECKING

from rest_bridge.discovery import as_json
from rest_bridge.routes import Handler, Mounted
from rest_bridge.serving import lazy
from toolserver.calls.response import json_bytes
from toolserver.core.caller import new_request_id
from toolserver.errors import CallRejected
from toolserver.money.purchases.credit_sales import CreditSales
from toolserver.money.x402.wire import TOPUP_PATH
from toolserver.registry import error_codes
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

if TYPE_CHECKING:
    from toolserver.money.x402.offers import X402Terms
    from toolserver.registry.site_facts import Document

PATH = "/.well-known/x402.json"


def pages(terms: "X402Terms", registry: Registry) -> dict[str, Handler]:
    """Return the handler by path, for a service that accepts x402 payments."""
    from toolserver.money.x402.offers import document  # loaded already, with the terms

    def listed() -> "Document":
        return as_json(document(terms, registry.listed))

    return {PATH: lazy(listed)}


def forward_topups(payments: CreditSales, facts: SiteFacts) -> dict[str, Mounted]:
    """Return the mounted app, by path, that forwards x402 top-ups to the service that sells for the followed ledger."""
    from toolserver.money.purchases.remote import RemotePurchases, forward_to

    assert isinstance(payments, RemotePurchases)

    def refused(rejected: CallRejected) -> tuple[int, bytes]:
        problem = error_codes.body(
            rejected.code, rejected.detail, facts=facts, request_id=new_request_id(), **rejected.extra
        )
        return rejected.status, json_bytes(problem)

    return {TOPUP_PATH: forward_to(payments, TOPUP_PATH, refused=refused)}
