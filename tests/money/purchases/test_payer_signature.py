"""Who signed a text: checked against signatures of eth-account, another implementation of EIP-191."""

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.money.purchases.parts import TX
from toolserver.money.purchases.payer_signature import digest, signer, text_to_sign

KEY = "0x" + "11" * 32
ADDRESS = bytes.fromhex(Account.from_key(KEY).address[2:])
TEXT = text_to_sign("data.example", "svc_buy_" + "1" * 32, TX)


def signed(text: str = TEXT) -> bytes:
    return bytes(Account.sign_message(encode_defunct(text=text), KEY).signature)


def test_the_text_names_service_memo_transaction_and_chain():
    assert TEXT == f"data.example confirm svc_buy_{'1' * 32} 0x{TX.hex()} chain 8453"


@pytest.mark.parametrize("text", [TEXT, "", "naïve ✓"])
def test_the_signer_is_the_account_that_signed(text):
    assert signer(text, signed(text)) == ADDRESS
    assert bytes(Account.sign_message(encode_defunct(text=text), KEY).message_hash) == digest(text)


def test_both_numberings_of_the_recovery_id_are_read():
    signature = signed()
    assert signature[64] in (27, 28)
    assert signer(TEXT, signature[:64] + bytes([signature[64] - 27])) == ADDRESS


def test_of_another_text_it_is_another_signer():
    assert signer(TEXT + " ", signed()) not in (ADDRESS, None)


@pytest.mark.parametrize(
    "signature",
    [b"", signed()[:64], signed() + b"\0", bytes(65), signed()[:64] + b"\x05", signed()[:64] + b"\xff", b"\xff" * 65],
)
def test_what_is_no_signature_has_no_signer(signature):
    assert signer(TEXT, signature) is None
