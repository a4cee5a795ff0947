"""The memo, and what is derived from it."""

import base64
import hashlib

import pytest

from tests.money.purchases.parts import TX, TX2
from toolserver.money.purchases.quotes import MEMO, challenge_of, memo_hash, new_memo
from toolserver.money.purchases.token_encryption import sealing_key

ONE = "svc_buy_" + "1" * 32


def test_memos_are_new_each_time_and_of_the_form_that_is_accepted():
    memos = {new_memo() for _ in range(100)}
    assert len(memos) == 100
    assert all(MEMO.fullmatch(memo) for memo in memos)


@pytest.mark.parametrize("memo", ["", ONE[:-1], ONE + "1", ONE.upper(), ONE.replace("1", "g"), f" {ONE}", f"{ONE}\n"])
def test_nothing_else_is_a_memo(memo):
    assert not MEMO.fullmatch(memo)


def test_what_is_stored_is_a_hash():
    assert memo_hash(ONE) == hashlib.sha256(ONE.encode()).digest()


def test_the_key_of_a_token_belongs_to_one_memo_and_one_transaction():
    keys = {sealing_key(memo, tx) for memo in (ONE, ONE.replace("1", "2")) for tx in (TX, TX2)}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}
    assert sealing_key(ONE, TX) == sealing_key(ONE, TX)


def test_a_challenge_is_that_of_rfc_7636():
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # the example of its appendix B
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert base64.urlsafe_b64decode(challenge_of("x") + "=") == hashlib.sha256(b"x").digest()
