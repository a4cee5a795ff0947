"""Writes /account: what is left on a token and what may spend it. The token stays in the memory of the page."""

from rest_bridge.pages.render import render_page
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import ACCOUNT, BUY, PAYMENTS, Document, SiteFacts


def account_page(registry: Registry, facts: SiteFacts, *, guide: bool = False) -> Document:
    """Return the page. `guide` says whether the document about webhooks is served."""
    paid = [operation for operation in registry if operation.tier is Tier.PREMIUM]
    return render_page(
        "account.html",
        registry,
        facts,
        path=ACCOUNT,
        title="Your account",
        about="Balance, statement, allowances and webhooks of a token, which is kept only in the page.",
        scripts=["account.js"],
        paid_tools=paid,
        delivered=[operation for operation in paid if not operation.input_schema.get("required")],
        sells=facts.sales is not None,
        buy=BUY,
        webhook_guide="/docs/webhooks#conditions" if guide else PAYMENTS,
    )
