"""What is open is read from the file: offers while they stand, payments that a person has to decide, unsettled ones."""

import httpx
import pytest

from tests.money.chain.parts import HEADS, WALLET, book_of, logged
from tests.money.purchases.parts import NOW, TX, TX2, Server, address_of, desk, paid
from tests.money.x402.parts import desk as paying
from tests.money.x402.parts import signed
from toolserver.errors import BelowMinimum, SettlementPending
from toolserver.money.books.open_cases import add_waiting, list_open_cases, list_pending_payments, sum_open_quotes
from toolserver.money.chain.transfer_states import name_transfers
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.matching import Policy

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


async def test_money_on_the_chain_of_which_no_document_is_a_case_is_one_by_its_state_and_has_its_history(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        short, waits = await d.quote("5"), await d.quote("5")
        server.sees(paid(address_of(short), 0.5))
        with pytest.raises(BelowMinimum):
            await d.confirm(TX, short.memo)
        both = logged(TX, address_of(short), 0.5), logged(TX2, address_of(short), 0.4, log_index=1)
        newest = logged(bytes([9]) * 32, address_of(waits), 5, block=199)
        await book_of(d).record(name_transfers([*both, newest]), HEADS, (NOW + 70) * 1000)
        await book_of(d).decide_all(HEADS, (NOW + 80) * 1000)
    assert len(list_open_cases(tmp_path / FILE, NOW_MS, 10)) == 1, "a second payment may still be credited by itself"
    cases = list_open_cases(tmp_path / FILE, NOW_MS + HALF_AN_HOUR_MS, 10)
    assert [(each["tx"], each["reason"]) for each in cases] == [
        (f"0x{TX.hex()}", "below_minimum"),
        (f"0x{TX2.hex()}", "below_minimum"),
    ]
    for each in cases:
        (of_chain,) = each["on_chain"]
        assert (of_chain["state"], of_chain["history"][-1]["state"]) == ("short", "short")
        assert of_chain["history"][0]["block"] == 100


@pytest.mark.parametrize(
    ("usd", "servers", "needs"),
    [
        (5, 2, "3 blocks on top"),
        (500, 1, "a safe block"),
        (5000, 1, "a safe block, and a second RPC server"),
        (5000, 2, "a safe block"),
        (20_000, 1, "a final block, and a second RPC server"),
    ],
)
async def test_what_waits_for_finality_says_for_what(tmp_path, usd, servers, needs):
    async with desk(tmp_path, [Server()]) as d:
        quote = await d.quote("5")
        waits = logged(TX, address_of(quote), usd, block=199)
        ours = logged(TX2, WALLET, 3)
        await book_of(d).record(name_transfers([waits, ours]), HEADS, NOW_MS)
    deposit = {"index": 0, "wallet": quote.wallet, "amount_usd": f"{usd}.000000", "purchase": "quoted"}
    deposits = [deposit, {"index": 7, "wallet": "0x1", "amount_usd": "1.000000", "purchase": "lost"}]
    first, lost, stray = add_waiting(tmp_path / FILE, deposits, Policy(), servers)
    assert (first["waits_for"], first["tx"]) == (needs, f"0x{TX.hex()}")
    assert lost["waits_for"] == "toolserver recover"
    assert (stray["wallet"], stray["purchase"]) == (checksum_address(WALLET), "foreign")
    assert stray["waits_for"] == "the operator: no document explains it"


async def test_a_deposit_that_is_a_case_waits_for_a_person_and_not_for_its_buyer(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        quote = await d.quote("5")
        await book_of(d).record(name_transfers([logged(TX, address_of(quote), 0.5)]), HEADS, NOW_MS)
    deposit = {"index": 0, "wallet": quote.wallet, "amount_usd": "0.500000", "purchase": "quoted"}
    (row,) = add_waiting(tmp_path / FILE, [deposit], Policy(), 2)
    assert (row["waits_for"], row["tx"]) == ("a person: see --cases", f"0x{TX.hex()}")
    assert add_waiting(tmp_path / FILE, [], Policy(), 2) == [], "a case without a deposit is listed by --cases alone"


async def test_a_signed_payment_is_pending_until_it_is_settled(tmp_path):
    async with paying(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.topup(signed(2_000_000))
    (row,) = list_pending_payments(tmp_path / FILE, NOW_MS + 60_000, 10)
    assert (row["for"], row["amount_usd"], row["age_seconds"]) == ("a top-up", "2.000000", 60)
    assert list_pending_payments(tmp_path / FILE, NOW_MS, 0) == []
