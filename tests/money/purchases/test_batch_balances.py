"""Balances of many addresses in one request, on a real chain: the code runs and is never deployed."""

import pytest

from tests.money.purchases.anvil import ALICE
from toolserver.money.purchases.chain.node import ChainNode, balances_code
from toolserver.money.purchases.chain.rpc_pool import BATCH
from toolserver.money.purchases.units import USDC


def test_the_code_names_the_token_and_the_place_where_the_addresses_begin():
    code = balances_code()
    assert code.count(USDC) == 1
    assert code.count(bytes([0x60, len(code)])) == 2


@pytest.mark.live
async def test_five_hundred_balances_are_read_in_one_request(anvil):
    addresses = [bytes([7]) * 18 + number.to_bytes(2) for number in range(BATCH)]
    paid = {0: 1.5, 7: 2, BATCH - 1: 1000}
    for number, usd in paid.items():
        anvil.pay(addresses[number], usd, ALICE)
    anvil.mine(3)
    node = ChainNode(anvil.url, timeout_s=15)
    found = await node.balances(addresses)
    await node.aclose()
    assert {number: amount / 1_000_000 for number, amount in enumerate(found) if amount} == paid
    assert len(found) == BATCH
