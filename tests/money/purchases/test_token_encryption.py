"""A token is readable with its key and with no other."""

import pytest

from toolserver.money.purchases.quotes import new_memo
from toolserver.money.purchases.store import memo_hash
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key

TOKEN, KEY = "svc_live_" + "a" * 64, bytes(32)


def test_a_token_comes_back_with_its_key():
    assert decrypt_token(encrypt_token(TOKEN, KEY), KEY) == TOKEN


def test_nothing_of_the_token_is_in_the_box_and_no_two_boxes_are_alike():
    first, second = encrypt_token(TOKEN, KEY), encrypt_token(TOKEN, KEY)
    assert TOKEN.encode()[9:] not in first
    assert first != second


@pytest.mark.parametrize("key", [bytes(31) + b"\1", b"\1" + bytes(31)])
def test_another_key_opens_nothing(key):
    assert decrypt_token(encrypt_token(TOKEN, KEY), key) is None


@pytest.mark.parametrize("place", [0, 30, -1])
def test_a_box_that_was_changed_opens_nothing(place):
    box = bytearray(encrypt_token(TOKEN, KEY))
    box[place] ^= 1
    assert decrypt_token(bytes(box), KEY) is None


def test_a_sealed_token_opens_with_the_memo_and_the_transaction_only():
    memo, tx = new_memo(), bytes([7]) * 32
    box = encrypt_token("svc_live_" + "1" * 64, sealing_key(memo, tx))
    assert b"svc_live" not in box
    assert decrypt_token(box, sealing_key(memo, tx)) == "svc_live_" + "1" * 64
    assert decrypt_token(box, sealing_key(new_memo(), tx)) is None
    assert decrypt_token(box, sealing_key(memo, bytes(32))) is None
    assert decrypt_token(b"x" * 10, sealing_key(memo, tx)) is None
    assert memo_hash(memo) not in (sealing_key(memo, tx), box)


def test_the_key_of_a_sealed_token_is_hkdf():
    """By another implementation of RFC 5869."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    memo, tx = "svc_buy_" + "5c" * 16, bytes(range(32))
    derived = HKDF(SHA256(), 32, b"toolserver sealed token", tx).derive(memo.encode())
    assert sealing_key(memo, tx) == derived
