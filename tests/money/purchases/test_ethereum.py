"""Hashes, signatures and points of the curve are those of Ethereum: compared with the plain definitions."""

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_keys.backends.native.jacobian import fast_add, fast_multiply
from eth_keys.constants import SECPK1_G, SECPK1_N
from hypothesis import given
from hypothesis import strategies as st

from tests.money.purchases.parts import TX
from toolserver.money.purchases.chain.ethereum import (
    add_multiple,
    checksum_address,
    decompress_point,
    keccak,
    message_digest,
    message_signer,
    tx_hash_of,
)
from toolserver.money.purchases.chain.relay import DATA_FEE_SELECTOR
from toolserver.money.purchases.confirm import text_to_sign
from toolserver.money.purchases.matching import AUTHORIZATION_USED, TRANSFER, TRANSFER_SELECTOR
from toolserver.money.purchases.transfer_authorization import SELECTOR
from toolserver.money.purchases.units import USDC, USDC_TEXT
from toolserver.money.x402.chain_lookup import CANCELED, STATE_SELECTOR

OTHER = fast_multiply(SECPK1_G, 7)


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


@given(st.integers(1, SECPK1_N - 8))
def test_a_multiple_and_a_point_are_added(factor):
    assert add_multiple(factor, OTHER) == fast_add(fast_multiply(SECPK1_G, factor), OTHER)


@pytest.mark.parametrize("factor", [1, 7, 15, 2**255, SECPK1_N - 1])
def test_factors_at_the_edges(factor):
    assert add_multiple(factor, OTHER) == fast_multiply(SECPK1_G, factor + 7)


@pytest.mark.parametrize("factor", [0, SECPK1_N - 7, SECPK1_N, 2**256 - 1])
def test_a_factor_without_a_key_and_a_sum_without_a_point_are_refused(factor):
    with pytest.raises(ValueError, match=r"."):
        add_multiple(factor, OTHER)


def test_33_bytes_are_a_point_or_are_refused():
    x, y = OTHER
    assert decompress_point(bytes([2 + y % 2]) + x.to_bytes(32, "big")) == OTHER
    for wrong in (bytes(33), bytes([4]) + x.to_bytes(32, "big"), b"\x02" + b"\xff" * 32, b""):
        with pytest.raises(ValueError, match=r"."):
            decompress_point(wrong)


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
