"""Hashes, signatures and points of the curve are those of Ethereum: compared with the plain definitions."""

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.money.purchases.parts import TX
from toolserver.money.purchases.chain.ethereum import (
    checksum_address,
    keccak,
    message_digest,
    message_signer,
    tx_hash_of,
)
from toolserver.money.purchases.chain.relay import DATA_FEE_SELECTOR
from toolserver.money.purchases.matching import AUTHORIZATION_USED, TRANSFER, TRANSFER_SELECTOR
from toolserver.money.purchases.service import text_to_sign
from toolserver.money.purchases.transfer_authorization import SELECTOR
from toolserver.money.purchases.units import USDC, USDC_TEXT
from toolserver.money.x402.chain_lookup import CANCELED, STATE_SELECTOR


@pytest.mark.parametrize(
    ("declared", "form"),
    [
        (TRANSFER, "Transfer(address,address,uint256)"),
        (AUTHORIZATION_USED, "AuthorizationUsed(address,bytes32)"),
        (CANCELED, "AuthorizationCanceled(address,bytes32)"),
        (TRANSFER_SELECTOR, "transfer(address,uint256)"),
        (STATE_SELECTOR, "authorizationState(address,bytes32)"),
        (DATA_FEE_SELECTOR, "getL1FeeUpperBound(uint256)"),
        (
            SELECTOR,
            "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
        ),
    ],
)
def test_events_and_functions_are_named_by_the_hash_of_their_form(declared, form):
    assert keccak(form.encode())[: len(declared)] == declared


def test_the_address_of_usdc_is_written_with_its_checksum():
    assert checksum_address(USDC) == USDC_TEXT


KEY = "0x" + "11" * 32
ADDRESS = bytes.fromhex(Account.from_key(KEY).address[2:])
TEXT = text_to_sign("data.example", "svc_buy_" + "1" * 32, TX)


def signed(text: str = TEXT) -> bytes:
    return bytes(Account.sign_message(encode_defunct(text=text), KEY).signature)


def test_the_text_names_service_memo_transaction_and_chain():
    assert TEXT == f"data.example confirm svc_buy_{'1' * 32} 0x{TX.hex()} chain 8453"


@pytest.mark.parametrize("text", [TEXT, "", "naïve ✓"])
def test_the_signer_is_the_account_that_signed(text):
    assert message_signer(text, signed(text)) == ADDRESS
    assert bytes(Account.sign_message(encode_defunct(text=text), KEY).message_hash) == message_digest(text)


def test_both_numberings_of_the_recovery_id_are_read():
    signature = signed()
    assert signature[64] in (27, 28)
    assert message_signer(TEXT, signature[:64] + bytes([signature[64] - 27])) == ADDRESS


def test_of_another_text_it_is_another_signer():
    assert message_signer(TEXT + " ", signed()) not in (ADDRESS, None)


@pytest.mark.parametrize(
    "signature",
    [b"", signed()[:64], signed() + b"\0", bytes(65), signed()[:64] + b"\x05", signed()[:64] + b"\xff", b"\xff" * 65],
)
def test_what_is_no_signature_has_no_signer(signature):
    assert message_signer(TEXT, signature) is None


@pytest.mark.parametrize("text", ["0x{}", "0X{}", "{}", " 0x{}\n"])
@pytest.mark.parametrize("digits", ["ab" * 32, "AB" * 32, "aB" * 32])
def test_every_spelling_of_a_transaction_is_the_same_bytes(text, digits):
    assert tx_hash_of(text.format(digits)) == b"\xab" * 32


@pytest.mark.parametrize("text", ["", "0x", "0x" + "ab" * 31, "0x" + "ab" * 33, "0x" + "g" * 64, "0x0x" + "ab" * 31])
def test_anything_else_is_no_transaction(text):
    assert tx_hash_of(text) is None


HASH = "ab" * 31 + "CD"


@pytest.mark.parametrize("text", [HASH, f"0x{HASH}", f"0X{HASH}", HASH.upper(), f"0x{HASH.lower()}", f" 0x{HASH}\n"])
def test_a_hash_is_the_same_in_every_spelling(text):
    assert tx_hash_of(text) == bytes.fromhex(HASH)


@pytest.mark.parametrize(
    "text", ["", "0x", HASH[:-1], HASH + "0", f"0x0x{HASH}", "g" * 64, f"{HASH}\0", "٠" * 64, "0x" + "1" * 66]
)
def test_what_is_no_hash_is_none(text):
    assert tx_hash_of(text) is None
