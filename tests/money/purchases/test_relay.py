"""The relay on a real chain, and before a server that is wrong: nothing is sent twice, and nothing in silence."""

import pytest
from aiohttp import web
from eth_keys.datatypes import PrivateKey

from tests.money.purchases.anvil import ALICE, RELAY, START, Anvil
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.test_transfer_authorization import KEY, ONE, PAYER
from tests.money.purchases.wallet import private_key
from toolserver.clock import SystemClock
from toolserver.money.purchases.chain.relay import ChainPrices, RelayDown, RelayedTransfer, open_relay

FEES = PrivateKey(private_key(3, 0))  # of RELAY
LATER = ONE._replace(amount=2_000_000, valid_before=START + 10**6)


async def submit(url, one, noted, key=FEES):
    async def note(tx):
        noted.append(tx)

    async with open_relay(url, SystemClock()) as relay:
        return await relay.submit(one, one.sign(KEY), key, note)


@pytest.mark.live
async def test_an_authorisation_is_sent_once_and_found_used_after_that(anvil: Anvil):
    anvil.pay(PAYER, 5, ALICE)
    before, noted = anvil.balance(LATER.payee), []
    first, again = await submit(anvil.url, LATER, noted), await submit(anvil.url, LATER, noted)
    assert (first, again) == (RelayedTransfer("sent", noted[0]), RelayedTransfer("used before"))
    assert anvil.balance(LATER.payee) - before == 2_000_000
    assert anvil.receipt(f"0x{noted[0].hex()}")["from"] == f"0x{RELAY.hex()}"


@pytest.mark.live
@pytest.mark.parametrize("change", [{"amount": 6_000_000}, {"valid_before": 5}], ids=["too little there", "too late"])
async def test_what_would_revert_is_not_sent(anvil: Anvil, change):
    anvil.pay(PAYER, 5, ALICE)
    noted: list[bytes] = []
    assert await submit(anvil.url, LATER._replace(**change), noted) == RelayedTransfer("refused")
    assert noted == []


@pytest.mark.live
async def test_an_account_without_ether_sends_nothing(anvil: Anvil):
    anvil.pay(PAYER, 5, ALICE)
    noted: list[bytes] = []
    poor = PrivateKey(bytes([0x44]) * 32)
    assert (await submit(anvil.url, LATER, noted, poor)).outcome == "refused"
    assert anvil.balance(PAYER) == 5_000_000


@pytest.mark.live
async def test_prices_come_from_the_chain(anvil: Anvil):
    async with open_relay(anvil.url, SystemClock()) as relay:
        prices = await relay.read_prices()
    assert prices.gas_price > 0
    assert prices.data_fee == 0  # no rollup


async def test_the_cost_of_data_is_asked_of_the_rollup():
    def wrong(call, said):
        return {**said, "error": None, "result": hex(7)} if call["method"] == "eth_call" else said

    async with fake_rpc(wrong=wrong) as fake, open_relay(fake.url, SystemClock()) as relay:
        assert await relay.read_prices() == ChainPrices(6_000_000, 7)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda call, said: {**said, "result": "0x1"}, "chain 1 instead of 8453"),
        (lambda call, said: web.Response(status=500), "HTTP 500"),
        (lambda call, said: {**said, "result": None}, "does not say which chain"),
    ],
)
async def test_a_server_of_another_chain_or_none_is_not_sent_to(wrong, why):
    async with fake_rpc(wrong=wrong) as fake:
        with pytest.raises(RelayDown, match=why) as down:
            await submit(fake.url, ONE, [])
    assert "SECRETKEY" not in str(down.value)


async def test_a_server_that_fails_later_says_nothing_about_the_transfer():
    def wrong(call, said):
        return said if call["method"] == "eth_chainId" else web.Response(status=503)

    async with fake_rpc(wrong=wrong) as fake:
        with pytest.raises(RelayDown, match="HTTP 503"):
            await submit(fake.url, ONE, [])
