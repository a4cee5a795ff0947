"""What is stored of an Idempotency-Key, and which key is the same."""

import pytest

from toolserver.money.x402.records import SECRET_LENGTH, hash_key, is_same_key


def test_only_the_hash_of_a_key_is_stored():
    stored = hash_key("a-long-idempotency-key")
    assert stored is not None
    assert len(stored) == 32
    assert b"long" not in stored


@pytest.mark.parametrize("key", [None, "", "x" * (SECRET_LENGTH - 1)])
def test_a_key_that_can_be_guessed_is_none(key):
    assert hash_key(key, least=SECRET_LENGTH) is None
    assert not is_same_key(hash_key("x" * 20), key, least=SECRET_LENGTH)


def test_a_key_of_the_least_length_is_one():
    assert hash_key("x" * SECRET_LENGTH, least=SECRET_LENGTH) is not None


def test_the_same_key_is_known_and_no_other():
    claim = hash_key("key one")
    assert is_same_key(claim, "key one")
    assert not is_same_key(claim, "key two")
    assert not is_same_key(claim, None)
    assert not is_same_key(None, "key one")
    assert not is_same_key(None, None)
