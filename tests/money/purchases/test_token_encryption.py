"""A token is readable with its key and with no other."""

import pytest

from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token

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
