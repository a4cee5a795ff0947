"""Writes /docs/payments: prices, how to buy credits, when a call is free. Every 402 leads here.

The text is a Markdown template, which agents get as Markdown and people as HTML.
"""

from rest_bridge.pages.render import markdown_to_html, render_page, render_text
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.error_codes import ErrorCode, with_topic
from toolserver.registry.licence_table import LicenceTable, write_markdown_table
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import (
    MARKDOWN,
    PAYMENTS,
    PAYMENTS_MARKDOWN,
    PREMIUM_LICENCE,
    Document,
    Sales,
    SiteFacts,
)

TITLE = "Credits and payments"
NO_TABLE = LicenceTable()
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

NO_CHARGE = {
    "5xx": ("the call failed, or no source of the payload answered", "500 or 503"),
    "circuit_breaker": ("the ledger was not reachable", "402 `billing_unavailable`"),
    "schema_failure": ("the answer did not match the tool's schema", "500"),
    "stale_data": ("a part of the answer is older than the tool promises", "200, with `stale: true`"),
    "empty_result": ("the answer contains no data", "200"),
    "cancelled": ("you disconnected before the answer was ready", "none"),
    "delivery_failed": ("the answer could not be delivered", "none"),
}
"""Every reason not to charge a call: when it applies, and what the caller gets."""


def payments(registry: Registry, facts: SiteFacts, licences: LicenceTable = NO_TABLE) -> Document:
    """Return the page for people."""
    return render_page(
        "markdown.html",
        registry,
        facts,
        path=PAYMENTS,
        title=TITLE,
        markdown_path=PAYMENTS_MARKDOWN,
        text=markdown_to_html(_write_text(registry, facts, licences)),
    )


def payments_markdown(registry: Registry, facts: SiteFacts, licences: LicenceTable = NO_TABLE) -> Document:
    """Return the page as Markdown, for agents."""
    return Document(_write_text(registry, facts, licences).encode(), MARKDOWN)


def _write_text(registry: Registry, facts: SiteFacts, licences: LicenceTable) -> str:
    priced = [operation for operation in registry.listed if operation.credits]
    easy = [one for one in priced if one.reads_only and not one.input_schema.get("required")]
    return render_text(
        "payments.md",
        facts=facts,
        sales=facts.sales,
        priced=priced,
        example=next(iter(easy), None),
        credits_per_usd=CREDITS_PER_USD,
        usdc=USDC,
        no_charge=NO_CHARGE,
        refusals=_list_refusals(facts.sales),
        quote_limits=_quote_limits(registry.get("payment_buy_credits"), facts),
        premium_licence=PREMIUM_LICENCE,
        licence_policy=facts.rights.policy,
        licence_table=write_markdown_table(licences) if licences.sections else "",
        withheld=[operation for operation in priced if operation.withheld],
    )


def _list_refusals(sales: Sales | None) -> list[ErrorCode]:
    """Return the error codes that a buyer may get: those of paid calls, then of purchases, then of x402."""
    topics = ["paid_call"]
    if sales is not None:
        topics += ["purchase"] if sales.x402_most_usd is None else ["purchase", "x402"]
    return [problem for topic in topics for problem in with_topic(topic)]


def _quote_limits(quote: Operation | None, facts: SiteFacts) -> str:
    """Return a sentence with the number of quotes that a client may request; empty if the server offers no quotes."""
    if quote is None or facts.sales is None or not quote.quotas:
        return ""
    quotas = " and ".join(f"{calls} in {round(seconds / 60)} min" for calls, seconds in quote.quotas)
    return f" Quotes: {quotas}."
