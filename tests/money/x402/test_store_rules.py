"""What every store of signed payments decides, without a store."""

from typing import Any

import pytest

from tests.money.x402.test_store import CREDIT, HASH, HASH2, ID, MS, PAYER, TX
from toolserver.money.x402.records import (
    TOKEN_REPLACED,
    NonceUsed,
    StoredPayment,
    judge_case,
    mint_replacement,
    mint_topup,
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
