"""Keys that sign offline: the same that other libraries derive, and none is ever repeated in a message."""

import pytest

from tests.money.purchases.wallet import DEPOSITS, MNEMONIC, XPUB, extended, private_key
from toolserver.money.purchases.offline_key import (
    KeyRefused,
    read_key_file,
    read_key_variable,
    read_private_key,
    read_signer,
)

XPRV = extended(version="0488ade4")


@pytest.mark.parametrize("text", [XPRV, MNEMONIC, f"  {MNEMONIC}\n"])
@pytest.mark.parametrize("index", [0, 7, 2**31 - 1])
def test_an_account_and_the_words_of_a_wallet_lead_to_the_keys_of_its_addresses(text, index):
    signer = read_signer(text, account=DEPOSITS)
    assert signer.find_key(f"0/{index}").to_bytes() == private_key(index)


def test_other_words_and_another_account_lead_to_other_keys():
    assert read_signer(MNEMONIC, account=DEPOSITS + 1).find_key("0/0").to_bytes() != private_key(0)
    assert read_signer(MNEMONIC[:-4] + "test", account=DEPOSITS).find_key("0/0").to_bytes() != private_key(0)


def test_a_single_key_signs_whatever_the_path():
    key = private_key(3)
    for text in (key.hex(), f"0x{key.hex()}\n"):
        assert read_signer(text).find_key(None).to_bytes() == read_private_key(text).to_bytes() == key


@pytest.mark.parametrize("path", [None, "", "0", "x/1", "-1/2", "0/2147483648", "0'/1", "0/99999999999"])
def test_an_account_signs_for_no_other_path(path):
    if path == "0":
        assert read_signer(XPRV).find_key(path)  # a path of one step is one
        return
    with pytest.raises(KeyRefused):
        read_signer(XPRV).find_key(path)


@pytest.mark.parametrize(
    "text",
    ["", "0x12", "00" * 32, "ff" * 32, "zz" * 32, XPUB, XPRV[:-1] + "1", extended((2**31,), "0488ade4"), "a b c"],
    ids=["nothing", "short", "zero", "too large", "no digits", "public", "mistyped", "another depth", "three words"],
)
def test_what_is_no_key_is_refused_without_its_text(text):
    with pytest.raises(KeyRefused) as refused:
        read_signer(text)
    assert not text or text not in str(refused.value)


def test_a_key_comes_from_a_file_of_its_owner_or_from_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_text(f"{MNEMONIC}\n", encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("OPERATOR_KEY", MNEMONIC)
    assert read_key_file(path) == read_key_variable("OPERATOR_KEY") == MNEMONIC
    path.chmod(0o640)
    for read in (lambda: read_key_file(path), lambda: read_key_file(tmp_path / "none"), lambda: read_key_variable("X")):
        with pytest.raises(KeyRefused) as refused:
            read()
        assert MNEMONIC not in str(refused.value)
