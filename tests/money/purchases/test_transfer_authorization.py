"""Authorisations of transfers: signed here as by wallets, and nothing else is accepted as one."""

import copy
import json

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_keys.datatypes import PrivateKey

from toolserver.money.purchases.transfer_authorization import SELECTOR, Authorization, UnusableDocument, read_document
from toolserver.money.purchases.units import USDC

KEY = PrivateKey(bytes([0x11]) * 32)
PAYER, PAYEE = KEY.public_key.to_canonical_address(), bytes([0xD0]) * 20
ONE = Authorization(PAYER, PAYEE, 7, 1_800_000_000, bytes(range(32)))


def document(**changed):
    return {"chain_id": 8453, "token": f"0x{USDC.hex()}", "authorizations": [{"typed_data": ONE.typed_data}]} | changed


def test_our_signature_is_that_of_a_wallet():
    signed = Account.sign_message(encode_typed_data(full_message=ONE.typed_data), KEY.to_bytes())
    assert ONE.sign(KEY) == bytes(signed.signature)
    assert ONE.is_signed(bytes(signed.signature))


@pytest.mark.parametrize("change", [{"amount": 8}, {"payee": bytes(20)}, {"valid_before": 5}, {"nonce": bytes(32)}])
def test_a_signature_holds_for_nothing_else(change):
    assert not ONE._replace(**change).is_signed(ONE.sign(KEY))


@pytest.mark.parametrize("wrong", [b"", bytes(65), bytes([255]) * 65, ONE.sign(KEY)[:64] + b"\0"])
def test_what_the_token_would_refuse_is_no_signature(wrong):
    assert not ONE.is_signed(wrong)


def test_the_call_has_the_words_that_the_token_reads():
    signature = ONE.sign(KEY)
    data = ONE.call(signature)
    assert data[:4] == SELECTOR == bytes.fromhex("e3ee160e")
    words = [data[at : at + 32] for at in range(4, len(data), 32)]
    assert (words[0][12:], words[1][12:], words[5]) == (PAYER, PAYEE, ONE.nonce)
    assert [int.from_bytes(word, "big") for word in words[2:5]] == [7, 0, 1_800_000_000]
    assert (words[6][-1], words[7] + words[8]) == (signature[64], signature[:64])


@pytest.mark.parametrize("length", [0, 64, 66])
def test_a_signature_has_65_bytes(length):
    with pytest.raises(ValueError, match="65 bytes"):
        ONE.call(bytes(length))


def test_a_document_is_read_back_as_it_was_written():
    ((entry, read),) = read_document(json.loads(json.dumps(document())))
    assert (read, entry["typed_data"]) == (ONE, ONE.typed_data)


@pytest.mark.parametrize(
    "changed", [{"chain_id": 1}, {"token": "0x" + "11" * 20}, {"authorizations": [{}]}, {"authorizations": 5}]
)
def test_a_document_of_another_form_or_chain_is_refused(changed):
    with pytest.raises(UnusableDocument):
        read_document(document(**changed))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("domain", "chainId"), 1),
        (("domain", "verifyingContract"), "0x" + "11" * 20),
        (("primaryType",), "ReceiveWithAuthorization"),
        (("message", "validAfter"), 9),
        (("message", "value"), 0),
        (("message", "nonce"), "0x12"),
        (("types", "TransferWithAuthorization"), []),
    ],
)
def test_an_entry_that_says_more_than_a_plain_transfer_is_refused(place, value):
    typed = copy.deepcopy(ONE.typed_data)
    inner = typed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    with pytest.raises(UnusableDocument, match="plain transfer"):
        read_document(document(authorizations=[{"typed_data": typed}]))
