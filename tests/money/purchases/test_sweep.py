"""The plan that is signed offline: which addresses, which keys, and what the relayer sends."""

import pytest

from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import KEY, TX, TX2, Server, address_of, desk
from tests.money.purchases.test_service import SHARED, settings
from tests.money.purchases.wallet import address, extended
from tests.requirements import proves
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import ChainDown
from toolserver.money.purchases.sweep import (
    Deposit,
    SubmissionCost,
    find_funded,
    plan,
    plan_sweep,
    plan_worthwhile_sweep,
    sweep_plan,
)
from toolserver.money.purchases.transfer_authorization import VALID_S

TO = bytes([0xD0]) * 20
NOW = 1_800_000_000


async def test_addresses_with_too_little_are_left_alone():
    amounts = {bytes([n]) * 20: n for n in range(4)}
    known = [(n, bytes([n]) * 20) for n in range(4)]

    async def balances(addresses):
        return [amounts[address] for address in addresses]

    assert [d.hd_index for d in await find_funded(known, balances, least=2)] == [2, 3]
    assert [d.amount for d in await find_funded(known, balances)] == [1, 2, 3]


async def test_a_thousand_addresses_take_a_request_for_five_hundred():
    asked = []

    async def balances(addresses):
        asked.append(len(addresses))
        return [1] * len(addresses)

    known = [(n, n.to_bytes(20)) for n in range(1001)]
    assert [d.hd_index for d in await find_funded(known, balances)] == list(range(1001))
    assert asked == [500, 500, 1]


def test_each_address_authorises_all_that_it_holds_to_one_place_for_a_week():
    made = plan([Deposit(4, KEY.address(4), 7), Deposit(9, KEY.address(9), 5)], TO, KEY, now=NOW)
    assert (made["chain_id"], made["total"], made["to"]) == (8453, 12, checksum_address(TO))
    first, second = made["authorizations"]
    assert (first["path"], second["path"]) == ("0/4", "0/9")
    message = first["typed_data"]["message"]
    assert (message["from"], message["to"]) == (checksum_address(KEY.address(4)), checksum_address(TO))
    assert (message["value"], message["validAfter"], message["validBefore"]) == (7, 0, NOW + VALID_S)
    assert message["nonce"] != second["typed_data"]["message"]["nonce"]


def test_addresses_of_another_key_are_named_and_not_signed_for():
    made = plan([Deposit(4, KEY.address(5), 7)], TO, KEY, now=NOW)
    assert (made["total"], made["authorizations"]) == (0, [])
    assert made["of_other_keys"] == [{"index": 4, "address": checksum_address(KEY.address(5)), "value": 7}]


@proves("sweep.planned")
def test_what_costs_more_than_it_yields_stays_and_the_plan_says_so():
    deposits = [Deposit(n, KEY.address(n), amount) for n, amount in enumerate((900_000, 5_000_000, 7_000_000))]
    made = plan_sweep(deposits, TO, KEY, SubmissionCost.of(10**9, 10**12, 60_000.0), now=NOW, least=1)
    assert (made["total"], [one["index"] for one in made["authorizations"]]) == (7_000_000, [2])
    assert made["left"] == {
        "least_usd": "5.460001",
        "worth_too_little": {"addresses": 2, "usd": "5.900000"},
        "bought_nothing_yet": {"addresses": 0, "usd": "0.000000"},
    }
    assert (made["yield_usd"], made["cost"]["usd"], made["cost"]["eth"]) == ("7.000000", "5.460000", "0.000091000")


def test_without_a_price_of_ether_the_cost_is_told_in_ether_alone():
    made = plan_sweep([Deposit(1, KEY.address(1), 5)], TO, KEY, SubmissionCost.of(10**9, 0, None), now=NOW, least=5)
    assert (made["total"], made["cost"]["usd"], made["cost"]["eth"]) == (5, None, "0.000090000")


def test_money_that_bought_nothing_yet_stays_unless_it_is_asked_for():
    deposits = [Deposit(n, KEY.address(n), 10, state) for n, state in enumerate(("quoted", "lost", "credited"))]
    cost = SubmissionCost.of(1, 0, None)
    made = plan_sweep(deposits, TO, KEY, cost, now=NOW, least=1)
    assert ([one["index"] for one in made["authorizations"]], made["left"]["bought_nothing_yet"]["addresses"]) == (
        [2],
        2,
    )
    assert plan_sweep(deposits, TO, KEY, cost, now=NOW, least=1, uncredited=True)["total"] == 30


async def test_a_sweep_names_what_is_worth_collecting(tmp_path):
    async with fake_rpc() as fake, desk(tmp_path, [Server()]) as d:
        quotes = [await d.quote() for _ in range(3)]
        fake.pay(address_of(quotes[0]), 0.5, TX)
        fake.pay(address_of(quotes[2]), 7, TX2)
        fake.now += 20
        given = settings(rpc_urls=[fake.url])
        before = await sweep_plan(given, addresses=await d.store.list_deposits(), clock=d.clock, to=SHARED)
        assert before["authorizations"] == []  # not final yet
        fake.now += 2000
        made = await sweep_plan(given, addresses=await d.store.list_deposits(), clock=d.clock, to=SHARED)
        assert (made["total"], made["to"]) == (7_000_000, checksum_address(bytes([0xD0]) * 20))
        (one,) = made["authorizations"]
        assert (one["path"], one["typed_data"]["message"]["from"]) == ("0/2", checksum_address(address(2)))


@pytest.mark.parametrize("to", ["", "0x12", "D0" * 20, SHARED + "00"])
async def test_a_sweep_goes_to_an_address(tmp_path, to):
    async with desk(tmp_path, [Server()]) as d:
        with pytest.raises(ValueError, match="0x and 40"):
            await sweep_plan(settings(), addresses=await d.store.list_deposits(), clock=d.clock, to=to)


async def test_a_sweep_needs_the_key_that_addresses_come_from(tmp_path):
    shared = settings(binding="shared_wallet", shared_wallet=SHARED, xpub=None)
    async with desk(tmp_path, [Server()]) as d:
        with pytest.raises(ValueError, match=r"payments\.xpub"):
            await sweep_plan(shared, addresses=await d.store.list_deposits(), clock=d.clock, to=SHARED)


@proves("sweep.planned")
async def test_a_sweep_signs_nothing_for_addresses_of_another_key(tmp_path):
    other = extended((44 + 2**31, 60 + 2**31, 3 + 2**31))
    async with fake_rpc() as fake, desk(tmp_path, [Server()]) as d:
        fake.pay(address_of(await d.quote()), 7, TX)
        fake.now += 2000
        made = await sweep_plan(
            settings(rpc_urls=[fake.url], xpub=other), addresses=await d.store.list_deposits(), clock=d.clock, to=SHARED
        )
    assert (made["total"], made["authorizations"]) == (0, [])
    assert [(one["index"], one["value"]) for one in made["of_other_keys"]] == [(0, 7_000_000)]


async def test_a_sweep_needs_the_chain(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        with pytest.raises(ChainDown):
            await sweep_plan(
                settings(rpc_urls=["http://127.0.0.1:9/"]),
                addresses=await d.store.list_deposits(),
                clock=d.clock,
                to=SHARED,
            )


async def test_a_sweep_weighs_costs_and_finds_purchases_that_a_backup_forgot(tmp_path):
    async with fake_rpc() as fake, desk(tmp_path, [Server()]) as d:
        quotes = [await d.quote() for _ in range(2)]
        for number, usd, tx in ((0, 7, TX), (1, 5, TX2), (3, 9, bytes([3]) * 32)):
            fake.pay(address(number), usd, tx)
        fake.now += 2000
        facts = {"issued_addresses": await d.store.list_deposits(), "states": {0: "credited", 1: "quoted"}, "issued": 5}
        given = settings(rpc_urls=[fake.url])
        made = await plan_worthwhile_sweep(given, **facts, clock=d.clock, to=SHARED, least=1, eth_usd=3000.0)
        whole = await plan_worthwhile_sweep(given, **facts, clock=d.clock, to=SHARED, least=1, uncredited=True)
    assert len(quotes) == 2
    assert ([one["index"] for one in made["authorizations"]], made["cost"]["usd"]) == ([0], "0.001620")
    assert made["left"]["bought_nothing_yet"] == {"addresses": 2, "usd": "14.000000"}
    assert [one["index"] for one in whole["authorizations"]] == [0, 1, 3]
