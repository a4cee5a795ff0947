"""Serves the pages of a service that keeps accounts: receipts, the log of uncharged calls, x402 terms."""

from typing import TYPE_CHECKING, Protocol

from rest_bridge import x402
from rest_bridge.pages.no_charge import no_charge_handler
from rest_bridge.pages.qr import serve_qr
from rest_bridge.pages.receipts import receipt_handlers
from rest_bridge.routes import Handler
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import Clock
from toolserver.core.caller import Addresses
from toolserver.money.receipts.service import ReceiptService
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import NO_CHARGE, QR, SiteFacts, sells

if TYPE_CHECKING:
    from toolserver.money.x402.offers import X402Terms


class TokenChecker(Protocol):
    """A ledger that knows tokens."""

    async def balance(self, token: str) -> object:
        """Raise PaymentRequired for an unknown token."""
        ...


class TermsHolder(Protocol):
    """A receiver of x402 payments."""

    @property
    def terms(self) -> "X402Terms": ...


class KeptAccounts(Protocol):
    """The accounts of a service. Without `evidence` there are no receipts."""

    @property
    def evidence(self) -> ReceiptService | None: ...
    @property
    def x402(self) -> TermsHolder | None: ...
    @property
    def ledger(self) -> TokenChecker: ...


def money_pages(
    registry: Registry,
    facts: SiteFacts,
    clock: Clock,
    money: KeptAccounts,
    limits: PersonalLimits,
    addresses: Addresses,
) -> dict[str, Handler]:
    """Return handlers by path. Reading receipts counts toward the limit of the payment tools."""
    handlers: dict[str, Handler] = {}
    if sells(registry):
        handlers[NO_CHARGE] = no_charge_handler(money.evidence, clock, registry, facts)
    if facts.sales is not None and facts.sales.transfer:
        handlers[QR] = serve_qr
    if money.evidence is not None:
        handlers |= receipt_handlers(money.evidence, limits, addresses, money.ledger.balance)
    if money.x402 is not None:
        handlers |= x402.pages(money.x402.terms, registry)
    return handlers
