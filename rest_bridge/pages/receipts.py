"""Writes /receipts, which verifies a receipt in the reader's browser without sending any of it."""

from rest_bridge.pages.render import render_page
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import PAYMENTS, RECEIPT_KEYS, RECEIPTS, Document, SiteFacts

ABOUT = "Check the signed receipt of a paid call in your browser. No part of it is sent anywhere."


def receipts_page(registry: Registry, facts: SiteFacts, *, guide: bool = False) -> Document:
    """Return the page. `guide` says whether the document about receipts is served."""
    paid = [operation for operation in registry if operation.tier is Tier.PREMIUM]
    return render_page(
        "receipts.html",
        registry,
        facts,
        path=RECEIPTS,
        title="Verify a receipt",
        about=ABOUT,
        scripts=["receipts.js"],
        example=paid[0] if paid else next(iter(registry)),
        key_set=RECEIPT_KEYS,
        guide="/docs/receipts" if guide else PAYMENTS,
        guide_title="Receipts and the no-charge log" if guide else "Credits and payments",
    )
