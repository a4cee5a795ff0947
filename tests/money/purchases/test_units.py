"""Money in whole numbers, secrets and hashes in one spelling."""

import hashlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.money.purchases.chain.ethereum import tx_hash_of
from toolserver.money.purchases.credit_price import credits_for
from toolserver.money.purchases.quotes import MEMO, challenge_of, memo_hash, new_memo
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key
from toolserver.money.purchases.units import LARGEST_USD, atomic


@given(st.integers(0, LARGEST_USD * 10**6))
def test_an_amount_in_dollars_and_in_atoms_is_the_same_amount(amount):
    assert atomic(Decimal(amount).scaleb(-6)) == amount
    assert atomic(Decimal(repr(amount / 10**6))) == amount  # as JSON numbers come


@pytest.mark.parametrize(
    "text",
    [
        *("1.0000001", "0.0000005", "-1", "1000000.000001", "NaN", "sNaN", "Infinity", "-Infinity", "1e309", "1e-400"),
        *("1." + "0" * 40 + "1", "1e999999", "1e-999999"),
    ],
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match="an amount"):
        atomic(Decimal(text))


@pytest.mark.parametrize(
    ("amount", "credits"),
    [(1_000_000, 50), (999_999, 49), (1_019_999, 50), (1_020_000, 51), (19_999, 0), (10**12, 5 * 10**7)],
)
def test_credits_are_rounded_down(amount, credits):
    assert credits_for(amount) == credits


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_splitting_a_payment_never_brings_more_credits(a, b):
    assert credits_for(a) + credits_for(b) <= credits_for(a + b)


HASH = "ab" * 31 + "CD"


@pytest.mark.parametrize("text", [HASH, f"0x{HASH}", f"0X{HASH}", HASH.upper(), f"0x{HASH.lower()}", f" 0x{HASH}\n"])
def test_a_hash_is_the_same_in_every_spelling(text):
    assert tx_hash_of(text) == bytes.fromhex(HASH)


@pytest.mark.parametrize(
    "text", ["", "0x", HASH[:-1], HASH + "0", f"0x0x{HASH}", "g" * 64, f"{HASH}\0", "٠" * 64, "0x" + "1" * 66]
)
def test_what_is_no_hash_is_none(text):
    assert tx_hash_of(text) is None


def test_memos_are_of_their_shape_and_never_the_same():
    made = {new_memo() for _ in range(100)}
    assert len(made) == 100
    assert all(MEMO.fullmatch(memo) for memo in made)


def test_a_memo_is_stored_as_its_sha_256():
    assert memo_hash("svc_buy_00") == hashlib.sha256(b"svc_buy_00").digest()


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


def test_a_challenge_is_that_of_rfc_7636():
    """Its appendix B."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
