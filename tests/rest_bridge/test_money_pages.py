"""Which pages a service has by what it keeps accounts of."""

from types import SimpleNamespace

from rest_bridge.money_pages import money_pages
from tests.catalog.tiny import FACTS, FREE, TINY
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses
from toolserver.receipts.memory import MemoryReceiptStore
from toolserver.receipts.service import ReceiptService

LEDGER = SimpleNamespace(balance=None)
NOTHING = SimpleNamespace(evidence=None, x402=None, ledger=LEDGER)


def paths(registry, money):
    return set(money_pages(registry, FACTS, ManualClock(0), money, None, Addresses([])))


def test_a_service_that_keeps_receipts_shows_them_and_the_log(tmp_path):
    named = {"clock": ManualClock(0), "base_url": "https://data.example", "service": "data.example"}
    evidence = ReceiptService(MemoryReceiptStore(), tmp_path, **named)
    found = paths(TINY, SimpleNamespace(evidence=evidence, x402=None, ledger=LEDGER))
    assert {"/no-charge", "/api/receipt/verify", "/.well-known/service-receipt-keys.json"} <= found
    assert "/.well-known/x402.json" not in found


def test_x402_is_described_where_it_is_taken():
    assert "/.well-known/x402.json" in paths(
        TINY, SimpleNamespace(evidence=None, x402=SimpleNamespace(terms=None), ledger=LEDGER)
    )


def test_where_nothing_is_sold_no_page_speaks_of_charges():
    assert paths(FREE, NOTHING) == set()
    assert paths(TINY, NOTHING) == {"/no-charge"}
