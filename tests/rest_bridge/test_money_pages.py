"""Which pages a service has by what it keeps accounts of."""

from dataclasses import replace

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.money_pages import money_pages
from tests.calls.parts import RICH
from tests.catalog.tiny import FACTS, FREE, TINY
from toolserver.calls.rate_limit import PersonalLimits
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses
from toolserver.errors import InvalidToken, RateLimited
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.x402.offers import X402Terms
from toolserver.registry.site_facts import Sales
from toolserver.sql.sqlite import MemoryGroupCommit, in_memory


def pages(registry, facts=FACTS, *, evidence=None, x402_terms=None, check_token=None, limits=None):
    return money_pages(
        registry,
        facts,
        ManualClock(0),
        evidence=evidence,
        x402_terms=x402_terms,
        check_token=check_token,
        identify=None,
        limits=limits,
        addresses=Addresses([]),
    )


def test_a_service_that_keeps_receipts_shows_them_and_the_log(tmp_path):
    named = {"clock": ManualClock(0), "issuer": Issuer("https://data.example", "data.example")}
    evidence = ReceiptService(SqlReceiptStore(MemoryGroupCommit()), tmp_path, **named)
    found = pages(TINY, evidence=evidence).keys()
    assert {"/no-charge", "/api/receipt/verify", "/.well-known/service-receipt-keys.json"} <= found
    assert "/.well-known/x402.json" not in found


def test_x402_is_described_where_it_is_taken():
    terms = X402Terms(bytes(20), 120, 1000, "https://data.example", "data.example")
    assert "/.well-known/x402.json" in pages(TINY, x402_terms=terms)


def test_where_nothing_is_sold_no_page_speaks_of_charges():
    assert pages(FREE).keys() == set()
    assert pages(TINY).keys() == {"/no-charge"}


@pytest.mark.parametrize(("sales", "is_drawn"), [(Sales(), True), (Sales(transfer=False), False), (None, False)])
def test_payments_are_drawn_only_where_credits_are_sold_by_transfer(sales, is_drawn):
    assert ("/buy/qr.svg" in pages(TINY, replace(FACTS, sales=sales))) is is_drawn


async def test_receipts_are_read_within_the_limit_and_by_tokens_that_the_ledger_knows(tmp_path):
    async def refuse(token):
        raise InvalidToken(f"unknown: {token}")

    named = {"clock": ManualClock(0), "issuer": Issuer("https://data.example", "data.example")}
    async with in_memory() as rows:
        evidence = ReceiptService(SqlReceiptStore(rows), tmp_path, **named)
        limits = PersonalLimits(per_minute=1, monotonic=ManualClock(0).monotonic)
        read = pages(TINY, evidence=evidence, check_token=refuse, limits=limits)["/api/receipt/*"]
        scope = {"path": "/api/receipt/rcpt_" + "0" * 32, "headers": [(b"authorization", f"Bearer {RICH}".encode())]}
        with pytest.raises(InvalidToken, match=RICH):
            await read(scope, parse_request(scope))
        with pytest.raises(RateLimited):
            await read(scope, parse_request(scope))
