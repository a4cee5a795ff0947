"""What operators do with deposits: plans of sweeps, by the settings and the chain."""

import pytest

from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import TX, TX2, Server, address_of, desk
from tests.money.purchases.test_service import SHARED, settings
from tests.money.purchases.wallet import address, extended
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.rpc_pool import ChainDown
from toolserver.money.purchases.sweep import plan_worthwhile_sweep, sweep_plan


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
