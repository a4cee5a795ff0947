"""The plan that is signed offline: which addresses, which keys, and what the relayer sends."""

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from tests.purchases.parts import KEY
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.sweep import SELECTOR, VALID_S, Deposit, calldata, find_funded, plan

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


def test_what_is_planned_can_be_signed_by_a_wallet_and_sent_by_a_relayer():
    (one,) = plan([Deposit(4, KEY.address(4), 7)], TO, KEY, now=NOW)["authorizations"]
    typed = one["typed_data"]
    signed = Account.sign_message(encode_typed_data(full_message=typed), "0x" + "11" * 32)
    data = calldata(typed["message"], bytes(signed.signature))
    assert data[:4] == SELECTOR == bytes.fromhex("e3ee160e")
    words = [data[at : at + 32] for at in range(4, len(data), 32)]
    assert words[0][12:] == KEY.address(4)
    assert words[1][12:] == TO
    assert [int.from_bytes(word, "big") for word in words[2:5]] == [7, 0, NOW + VALID_S]
    assert words[5].hex() == typed["message"]["nonce"][2:]
    assert (words[6][-1], words[7] + words[8]) == (signed.signature[64], bytes(signed.signature[:64]))


@pytest.mark.parametrize("length", [0, 64, 66])
def test_a_signature_has_65_bytes(length):
    (one,) = plan([Deposit(4, KEY.address(4), 7)], TO, KEY, now=NOW)["authorizations"]
    with pytest.raises(ValueError, match="65 bytes"):
        calldata(one["typed_data"]["message"], bytes(length))
