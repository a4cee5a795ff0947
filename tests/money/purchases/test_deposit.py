"""Deposit addresses: the same as other wallets derive, and no key but an account's public one is taken."""

import hmac

import pytest
from eth_keys.backends.native.jacobian import fast_add, fast_multiply
from eth_keys.constants import SECPK1_G, SECPK1_N
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.money.purchases.wallet import XPUB, address, base58check, extended
from tests.size import sized
from toolserver.money.purchases.chain.ethereum import address_from, checksum_address
from toolserver.money.purchases.deposit import DepositKey, NotAnAccountKey, account_key, add_multiple, decompress_point

ACCOUNT = (44 + 2**31, 60 + 2**31, 2**31)
KEY = DepositKey(XPUB)
OTHER = fast_multiply(SECPK1_G, 7)


def test_the_first_addresses_are_those_that_every_wallet_shows_for_the_test_mnemonic():
    key = DepositKey(extended(ACCOUNT))
    assert [checksum_address(key.address(i)) for i in range(3)] == [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    ]


def test_the_master_key_of_a_wallet_is_refused():
    """Test vector 2 of BIP-32: a good key, but of depth 0."""
    head = "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8"
    master = head + "idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB"
    with pytest.raises(NotAnAccountKey, match="depth 3"):
        account_key(master)


@settings(max_examples=sized(25, fast=5))
@given(st.integers(0, 2**31 - 1))
def test_any_address_is_the_one_whose_private_key_the_mnemonic_gives(index):
    assert KEY.address(index) == address(index)


@pytest.mark.parametrize("index", [0, 1, 2, 41, 1_000_000])
def test_addresses_do_not_depend_on_what_was_asked_before(index):
    assert DepositKey(f" {XPUB}\n").address(index) == address(index)


@pytest.mark.parametrize("index", [-1, 2**31, 2**32])
def test_an_index_outside_the_public_range_is_refused(index):
    with pytest.raises(ValueError, match="2\\^31"):
        KEY.address(index)


HEAD = bytes.fromhex("0488b21e") + b"\3" + bytes(4) + (2**31).to_bytes(4, "big") + bytes(32)  # all but the point
WRONG = {
    "a private key": extended(ACCOUNT, "0488ade4"),
    "the key of another depth": extended(ACCOUNT[:2]),
    "the key of an address": extended((*ACCOUNT, 0, 5)),
    "an account that is not hardened": extended((44 + 2**31, 60 + 2**31, 0)),
    "another version (ypub)": extended(ACCOUNT, "049d7cb2"),
    "a character lost": XPUB[:-1],
    "a character changed": XPUB[:20] + ("a" if XPUB[20] != "a" else "b") + XPUB[21:],
    "a character that base58 has not": "0" + XPUB[1:],
    "words": "test test test test test test test test test test test junk",
    "nothing": "",
    "far too much": "x" * 100_000,
    "another checksummed text": base58check(b"hello"),
    "no point of the curve": base58check(HEAD + b"\2" + b"\xff" * 32),
    "an x without a y": base58check(HEAD + b"\2" + bytes(31) + b"\5"),
    "a point written in another way": base58check(HEAD + b"\4" + bytes(31) + b"\1"),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_anything_but_an_account_key_is_refused_without_being_repeated(text):
    with pytest.raises(NotAnAccountKey) as refused:
        DepositKey(text)
    assert len(text) < 8 or text[:8] not in str(refused.value)


def test_the_index_that_has_no_key_is_refused(monkeypatch):
    """One in 2^127: BIP-32 says to take the next one."""
    monkeypatch.setattr(hmac, "digest", lambda *_: b"\xff" * 64)
    with pytest.raises(ValueError, match="no key"):
        KEY.address(0)


GOOD = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


@pytest.mark.parametrize("text", [GOOD, GOOD.lower(), f"0x{GOOD[2:].upper()}"])
def test_an_address_is_the_same_in_every_spelling(text):
    assert address_from(text) == bytes.fromhex(GOOD[2:])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD[2:], "0x and 40"),
        (GOOD[:-1], "0x and 40"),
        (f"{GOOD}\n", "0x and 40"),
        (GOOD.replace("f3", "F3"), "checksum"),
        (f"{GOOD[:-1]}7", "checksum"),
    ],
    ids=["no 0x", "short", "a line", "another case", "another digit"],
)
def test_an_address_that_is_mistyped_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        address_from(text)


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
