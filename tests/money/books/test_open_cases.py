"""What is open is read from the file: offers while they stand, payments that a person has to decide, unsettled ones."""

import httpx
import pytest

from tests.money.purchases.parts import NOW, TX, Server, address_of, desk, paid
from tests.money.x402.parts import desk as paying
from tests.money.x402.parts import signed
from toolserver.errors import BelowMinimum, SettlementPending
from toolserver.money.books.open_cases import list_open_cases, list_pending_payments, sum_open_quotes
from toolserver.money.ledger.store import FILE

NOW_MS = NOW * 1000
HALF_AN_HOUR_MS = 1_800_000


async def test_offers_count_until_they_expire_and_paid_ones_do_not(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        bought, _ = await d.quote("5"), await d.quote("2.5")
        server.sees(paid(address_of(bought), 5))
        await d.confirm(TX, bought.memo)
    assert sum_open_quotes(tmp_path / FILE, NOW_MS) == (1, 2.5, False)
    assert sum_open_quotes(tmp_path / FILE, NOW_MS + HALF_AN_HOUR_MS) == (0, 0, False)


async def test_a_payment_that_bought_nothing_is_a_case_and_the_limit_holds(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 0.5))
        with pytest.raises(BelowMinimum):
            await d.confirm(TX, quote.memo)
    (case,) = list_open_cases(tmp_path / FILE, NOW_MS, 10)
    assert (case["kind"], case["amount_usd"], case["reason"]) == ("unapplied", "0.500000", "below_minimum")
    assert list_open_cases(tmp_path / FILE, NOW_MS, 0) == []


async def test_a_signed_payment_is_pending_until_it_is_settled(tmp_path):
    async with paying(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.topup(signed(2_000_000))
    (row,) = list_pending_payments(tmp_path / FILE, NOW_MS + 60_000, 10)
    assert (row["for"], row["amount_usd"], row["age_seconds"]) == ("a top-up", "2.000000", 60)
    assert list_pending_payments(tmp_path / FILE, NOW_MS, 0) == []
