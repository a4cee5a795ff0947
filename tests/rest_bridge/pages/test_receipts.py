"""/receipts: what the page says without JavaScript, and that what it links to is there."""

import pytest

from rest_bridge.documents import documents
from rest_bridge.pages.receipts import receipts_page
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.rest_bridge.markup import Page
from toolserver.registry.site_facts import RECEIPTS


def test_it_says_what_is_checked_and_how_to_get_a_receipt_of_this_very_service():
    page = Page(receipts_page(REGISTRY, FACTS).body)
    assert "nothing you paste is sent anywhere" in page.text
    for check in ("Form", "Key", "Signature", "Time", "Answer", "Log"):
        assert check in page.words
    assert "https://data.example/api/pro/" in page.text
    assert "/.well-known/service-receipt-keys.json" in page.links


def test_it_leads_to_the_document_about_receipts_where_that_is_served():
    without = documents(REGISTRY, FACTS)[RECEIPTS]
    there = documents(REGISTRY, FACTS, guides={"receipts": "# Receipts\n", "README": ""})[RECEIPTS]
    assert "/docs/receipts" not in Page(without.body).links
    assert "/docs/receipts" in Page(there.body).links


def test_the_call_to_copy_is_a_paid_one_if_there_is_one():
    assert "headers.txt -o answer.json https://data.example/api/pro/deep " in Page(receipts_page(TINY, FACTS).body).text
    assert "answer.json https://data.example/api/sights " in Page(receipts_page(FREE, FACTS).body).text


@pytest.mark.parametrize(
    ("guide", "link"),
    [
        (True, '<a href="/docs/receipts">Receipts and the no-charge log</a>'),
        (False, '<a href="/docs/payments">Credits and payments</a>'),
    ],
)
def test_the_page_names_the_document_that_it_leads_to(guide, link):
    body = receipts_page(TINY, FACTS, guide=guide).body.decode()
    assert f"see {link}." in body
    assert any(src.endswith("/js/receipts.js") for src in Page(body.encode()).scripts)
