"""Writes /buy, where readers buy credits step by step with a USDC transfer from their own wallet."""

from rest_bridge.pages.render import render_page
from toolserver.core.credit_price import CREDITS_PER_USD
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import ACCOUNT, BUY, DEMO_PAY, PAYMENTS, QR, RECEIPTS, WATCH, Document, SiteFacts


def buy_page(registry: Registry, facts: SiteFacts) -> Document:
    """Return the page. On a simulated chain it offers to pay from a demo wallet."""
    priced = [operation for operation in registry if operation.credits]
    first = next((one for one in priced if not one.input_schema.get("required")), None)
    demo = facts.sales is not None and facts.sales.demo_wallet
    terms = facts.sales.terms if facts.sales else None
    shop = {
        "credits_per_usd": CREDITS_PER_USD,
        "prices": sorted({one.credits for one in priced}),
        "demo_pay": DEMO_PAY if demo else None,
        "watch": WATCH if facts.sales is not None and facts.sales.sees_payments else None,
        "quote_s": terms.quote_minutes * 60 if terms else None,
        "qr": QR,
        "first_call": facts.url(first.path) if first else facts.url("/api/payment/balance"),
    }
    return render_page(
        "buy.html",
        registry,
        facts,
        path=BUY,
        title="Buy credits",
        about="Credits for the paid tools, bought with USDC on Base: no account, no subscription.",
        scripts=["buy.js"] if facts.sales and facts.sales.transfer else [],
        shop=shop,
        sales=facts.sales,
        demo=demo,
        prices=shop["prices"],
        credits_per_usd=CREDITS_PER_USD,
        payments=PAYMENTS,
        account=ACCOUNT,
        receipts=RECEIPTS,
    )
