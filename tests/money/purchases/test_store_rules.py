"""What every store of purchases decides, without a store."""

from typing import Any

import pytest

from tests.money.purchases.parts import OTHER, TX, observed, receipt, transfer_log
from tests.money.purchases.test_store import MS, SECOND, TOKEN, US, credit
from toolserver.core.caller import token_hash
from toolserver.money.ledger.operations import Mint, Reserve
from toolserver.money.ledger.state import LedgerState
from toolserver.money.purchases.records import CreditFacts, NotCreditable, TakeBack, decide_credit, other_transfers

HASH = token_hash(TOKEN).hex()


def facts(**changed: Any) -> CreditFacts:
    return CreditFacts("quoted", US, False, 0, 0, {US: 1, SECOND: 2})._replace(**changed)


def test_a_payment_mints_its_credits_once_for_its_transaction():
    decision = decide_credit(credit(), facts())
    assert (decision.credits, decision.unapplied) == (250, [])
    assert (decision.mint.key, decision.mint.credits) == (HASH, 250)
    assert decision.mint.cause == f"eip155:8453:0x{TX.hex()}:0"


@pytest.mark.parametrize("changed", [{"state": "credited"}, {"transaction_used": True}, {"lost": 250}, {"lost": 251}])
def test_what_was_credited_or_spent_before_is_not_credited(changed):
    with pytest.raises(NotCreditable):
        decide_credit(credit(), facts(**changed))


def test_after_a_reversal_what_was_spent_is_deducted_and_the_cause_is_another():
    decision = decide_credit(credit(), facts(state="reorged", reversals=2, lost=249))
    assert (decision.credits, decision.mint.credits) == (1, 1)
    assert decision.mint.cause.endswith(":2")


def test_other_transfers_to_us_are_unapplied_by_purchase_and_those_to_others_are_not_ours():
    logs = [transfer_log(US, 5, 0), transfer_log(SECOND, 1, 1), transfer_log(SECOND, 2, 2), transfer_log(OTHER, 4, 3)]
    given = credit(seen=observed(receipt(*logs)))
    assert [t.log_index for t in other_transfers(given)] == [1, 2, 3]
    assert decide_credit(given, facts()).unapplied == [(TX, 2, 3_000_000, "transaction_used", MS)]


def test_of_a_shared_address_the_rest_belongs_to_the_purchase_that_is_credited():
    given = credit(seen=observed(receipt(transfer_log(US, 5, 0), transfer_log(US, 2, 1))))
    given = given._replace(paid=given.paid._replace(indexes=(0,)))
    assert decide_credit(given, facts(owners={})).unapplied == [(TX, 1, 2_000_000, "transaction_used", MS)]


def test_a_transfer_of_nothing_is_not_recorded():
    given = credit(seen=observed(receipt(transfer_log(US, 5, 0), transfer_log(SECOND, 0, 1))))
    assert decide_credit(given, facts()).unapplied == []


@pytest.mark.parametrize(("spent", "taken"), [(0, 100), (30, 70), (100, 0)])
def test_taking_back_revokes_the_token_and_never_goes_below_zero(spent, taken):
    books = LedgerState(MS)
    Mint(HASH, 100, "test", "acct_1").on(books)
    if spent:
        Reserve("call_1", HASH, spent, "/x", "", MS + 1000).on(books)
    assert TakeBack(HASH, 100, "undone").on(books) == taken
    token = books.tokens[HASH]
    assert (token.revoked_at, token.revoke_reason) == (MS, "undone")
    assert books.accounts[token.account].spendable == 0


def test_of_a_token_with_more_only_the_credits_named_are_taken_back():
    books = LedgerState(MS)
    Mint(HASH, 100, "test", "acct_1").on(books)
    assert TakeBack(HASH, 40, "undone").on(books) == 40
    assert books.accounts[books.tokens[HASH].account].spendable == 60
