"""What every store of signed payments decides, without a store."""

from typing import Any

import pytest

from tests.money.purchases.parts import OTHER, PAYER, receipt, transfer_log, word
from tests.money.x402.parts import PAY_TO
from tests.money.x402.test_store import CREDIT, HASH, HASH2, ID, MS, TX
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import AUTHORIZATION_USED, Log
from toolserver.money.purchases.units import USDC
from toolserver.money.x402.records import (
    NEW,
    SECRET_LENGTH,
    TOKEN_REPLACED,
    TOPUP,
    ChainTopup,
    NonceUsed,
    StoredPayment,
    begin_recovered,
    find_topups,
    hash_key,
    is_same_key,
    is_topup,
    judge_case,
    mint_replacement,
    mint_topup,
    owner_of,
    recovered_id,
    withdraw_unused,
)

NONCE = bytes([5]) * 32


def stored(**changed: Any) -> StoredPayment:
    found = StoredPayment(ID, "topup new", "settled", TX, None, HASH, 100, None, None, MS, MS, 77, None, False)
    return found._replace(**changed)


def test_a_top_up_mints_once_for_payer_and_nonce():
    mint = mint_topup(CREDIT, PAYER, NONCE, None)
    assert (mint.key, mint.credits) == (HASH, 100)
    assert mint.cause == f"x402:eip155:8453:0x{PAYER.hex()}:0x{NONCE.hex()}"
    with pytest.raises(NonceUsed):
        mint_topup(CREDIT, PAYER, NONCE, HASH)


def test_an_unused_token_is_withdrawn_with_all_its_credits():
    taken = withdraw_unused(HASH, stored(), 100)
    assert (taken.key, taken.credits, taken.reason) == (HASH, 100, TOKEN_REPLACED)


@pytest.mark.parametrize(
    "found", [None, stored(used=True), stored(token=HASH2), stored(token=None), stored(credits=99)]
)
def test_no_other_token_is_withdrawn(found):
    with pytest.raises(NonceUsed):
        withdraw_unused(HASH, found, 100)


@pytest.mark.parametrize("taken", [0, 99])
def test_nothing_is_minted_anew_unless_everything_was_taken_back(taken):
    with pytest.raises(NonceUsed):
        mint_replacement(HASH, CREDIT._replace(token=HASH2), taken)


def test_a_replacement_mints_once_for_the_token_that_it_replaces():
    mint = mint_replacement(HASH, CREDIT._replace(token=HASH2), 100)
    assert (mint.key, mint.credits, mint.cause) == (HASH2, 100, f"x402:replaces:{HASH}")


@pytest.mark.parametrize(
    ("changed", "after_ms", "kind"),
    [
        ({"state": "settling", "settled_at": None}, 3_599_999, None),
        ({"state": "settling", "settled_at": None}, 3_600_000, "unsettled"),
        ({"token": None}, 599_999, None),
        ({"token": None}, 600_000, "uncredited"),
        ({}, 10**9, None),
        ({"token": None, "request": "GET /api/pro/x h"}, 600_000, "unanswered"),
        ({"token": None, "request": "GET /api/pro/x h", "answered_at": MS}, 10**9, None),
    ],
)
def test_a_person_looks_at_what_is_unknown_or_owed_for_too_long(changed, after_ms, kind):
    assert judge_case(stored(**changed), MS + after_ms) == kind


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


def test_a_top_up_of_a_known_token_has_an_owner_and_nothing_else_has():
    assert owner_of(f"{TOPUP}{'a' * 64}") == "a" * 64
    assert owner_of(f"{TOPUP}{NEW}") is None
    assert owner_of("GET /api/pro/x hash") is None


PRICES = {20_000, 40_000, 3 * ATOMIC}
TOPUP_NONCE, NONCE2 = bytes([1]) * 32, bytes([2]) * 32
ON_CHAIN = ChainTopup(PAYER, TOPUP_NONCE, 5 * ATOMIC)


def mark(index, payer=PAYER, nonce=TOPUP_NONCE):
    return Log(USDC, (AUTHORIZATION_USED, word(payer), nonce), b"", index)


def test_each_authorised_transfer_to_us_is_a_top_up():
    logs = (mark(1), transfer_log(PAY_TO, 5, 2), mark(3, OTHER, NONCE2), transfer_log(PAY_TO, 7, 4, payer=OTHER))

    assert find_topups(receipt(*logs), PAY_TO, PRICES) == [ON_CHAIN, ChainTopup(OTHER, NONCE2, 7 * ATOMIC)]


@pytest.mark.parametrize(
    "logs",
    [
        (transfer_log(PAY_TO, 5, 2),),
        (mark(1), transfer_log(OTHER, 5, 2)),
        (mark(1), transfer_log(PAY_TO, 0.04, 2)),
        (mark(1), transfer_log(PAY_TO, 3, 2)),
    ],
    ids=["nobody authorised it", "it paid another address", "it paid for a call", "it costs as much as a call"],
)
def test_nothing_else_is(logs):
    assert find_topups(receipt(*logs), PAY_TO, PRICES) == []


@pytest.mark.parametrize(("amount", "yes"), [(ATOMIC - 1, False), (ATOMIC, True), (40_000, False), (3 * ATOMIC, False)])
def test_the_amount_tells_a_top_up_from_a_call(amount, yes):
    assert is_topup(amount, PRICES) is yes


def test_a_recovered_payment_is_stored_under_an_id_that_its_authorisation_alone_decides():
    begun = begin_recovered(ON_CHAIN, 7)

    assert begun == (begun.payload, PAYER, TOPUP_NONCE, 5 * ATOMIC, "topup new", 0, None, 7, None)
    assert begun.payload == recovered_id(PAYER, TOPUP_NONCE)
    assert len({recovered_id(PAYER, TOPUP_NONCE), recovered_id(OTHER, TOPUP_NONCE), recovered_id(PAYER, NONCE2)}) == 3
