"""Forwards paths that are not tools to the service that owns a followed ledger."""

from rest_bridge.routes import Mounted
from toolserver.calls.response import json_bytes
from toolserver.core import ids
from toolserver.core.credit_sales import CreditSales
from toolserver.errors import CallRejected
from toolserver.money.x402.headers import TOPUP_PATH
from toolserver.registry import error_codes
from toolserver.registry.site_facts import SiteFacts


def forward_topups(payments: CreditSales, facts: SiteFacts) -> dict[str, Mounted]:
    """Return the mounted app, by path, that forwards x402 top-ups to the service that sells for the followed ledger."""
    from toolserver.money.purchases.remote import RemotePurchases, forward_to

    assert isinstance(payments, RemotePurchases)

    def refused(rejected: CallRejected) -> tuple[int, bytes]:
        problem = error_codes.body(
            rejected.code, rejected.detail, facts=facts, request_id=ids.request_id(), **rejected.extra
        )
        return rejected.status, json_bytes(problem)

    return {TOPUP_PATH: forward_to(payments, TOPUP_PATH, refused=refused)}
