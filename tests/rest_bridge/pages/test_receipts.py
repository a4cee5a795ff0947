"""/receipts: what the page says without JavaScript, and that what it links to is there."""

from rest_bridge.documents import documents
from rest_bridge.pages.receipts import receipts_page
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS
from tests.rest_bridge.markup import Page
from toolserver.registry.site_facts import RECEIPTS


def test_it_says_what_is_checked_and_how_to_get_a_receipt_of_this_very_service():
    page = Page(receipts_page(REGISTRY, FACTS).body)
    assert "what you paste is not sent anywhere" in page.text
    for check in ("Form", "Key", "Signature", "Time", "Answer", "Log"):
        assert check in page.words
    assert "https://data.example/api/pro/" in page.text
    assert "/.well-known/service-receipt-keys.json" in page.links


def test_it_leads_to_the_document_about_receipts_where_that_is_served():
    without = documents(REGISTRY, FACTS)[RECEIPTS]
    there = documents(REGISTRY, FACTS, guides={"receipts": "# Receipts\n", "README": ""})[RECEIPTS]
    assert "/docs/receipts" not in Page(without.body).links
    assert "/docs/receipts" in Page(there.body).links
