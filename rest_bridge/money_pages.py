"""Serves the pages of a service that keeps accounts: receipts, the log of uncharged calls, x402 terms."""

from typing import TYPE_CHECKING

from rest_bridge import x402
from rest_bridge.pages.no_charge import no_charge_handler
from rest_bridge.pages.qr import serve_qr
from rest_bridge.pages.receipts import Identify, TokenCheck, receipt_handlers
from rest_bridge.routes import Handler
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import Clock
from toolserver.core.caller import Addresses
from toolserver.money.receipts.service import ReceiptService
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import NO_CHARGE, QR, SiteFacts, sells

if TYPE_CHECKING:
    from toolserver.money.x402.offers import X402Terms


def money_pages(
    registry: Registry,
    facts: SiteFacts,
    clock: Clock,
    *,
    evidence: ReceiptService | None,
    x402_terms: "X402Terms | None",
    check_token: TokenCheck,
    identify: Identify,
    limits: PersonalLimits,
    addresses: Addresses,
) -> dict[str, Handler]:
    """Return handlers by path. Without `evidence` there are no receipts, without `x402_terms` no x402 payments.

    Reading receipts counts toward the limit of the payment tools, of the client that
    `identify` finds. `check_token` raises for an unknown token.
    """
    handlers: dict[str, Handler] = {}
    if sells(registry):
        handlers[NO_CHARGE] = no_charge_handler(evidence, clock, registry, facts)
    if facts.sales is not None and facts.sales.transfer:
        handlers[QR] = serve_qr
    if evidence is not None:
        handlers |= receipt_handlers(evidence, limits, addresses, check_token, identify)
    if x402_terms is not None:
        handlers |= x402.pages(x402_terms, registry)
    return handlers
