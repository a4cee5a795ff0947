"""What counts as a payment: judged from receipts made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.money.purchases.parts import OTHER, PAYER, receipt, transfer_log, word
from tests.requirements import proves
from toolserver.money.purchases.matching import (
    AUTHORIZATION_USED,
    MOST,
    TRANSFER,
    TRANSFER_SELECTOR,
    AuthorizedTransfer,
    Log,
    MatchedPayment,
    Proofs,
    Transaction,
    authorized_transfers,
    match_deposit,
    match_with_proof,
    says_memo,
)
from toolserver.money.purchases.quotes import commitment
from toolserver.money.purchases.units import USDC

US = bytes([0xD0]) * 20
MEMO = "svc_buy_" + "5c" * 16
MARK = commitment(MEMO)
GOOD = transfer_log(US, 5, 3)


def authorization(payer: bytes = PAYER, nonce: bytes = MARK, token: bytes = USDC) -> Log:
    return Log(token, (AUTHORIZATION_USED, word(payer), nonce), b"", 9)


def call(to: bytes = US, tail: bytes = MARK, token: bytes = USDC) -> Transaction:
    return Transaction(token, TRANSFER_SELECTOR + word(to) + (5_000_000).to_bytes(32, "big") + tail)


def test_the_topics_are_those_of_the_token():
    assert TRANSFER.hex() == "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    assert TRANSFER_SELECTOR.hex() == "a9059cbb"


def test_a_transfer_to_us_is_what_was_paid():
    assert match_deposit(receipt(GOOD), US) == MatchedPayment(5_000_000, (3,), frozenset({PAYER}))


def test_transfers_of_one_transaction_are_added_up_whoever_sent_them():
    more = transfer_log(US, 2.5, 7, payer=OTHER)
    elsewhere = transfer_log(OTHER, 100, 8)
    assert match_deposit(receipt(GOOD, more, elsewhere), US) == MatchedPayment(
        7_500_000, (3, 7), frozenset({PAYER, OTHER})
    )


def test_a_log_that_is_told_twice_counts_once():
    assert match_deposit(receipt(GOOD, GOOD), US) == MatchedPayment(5_000_000, (3,), frozenset({PAYER}))


def test_a_failed_transaction_pays_nothing_even_if_its_receipt_shows_logs():
    assert match_deposit(receipt(GOOD, status=0), US) is None


FORGED = {
    "another contract": GOOD._replace(address=OTHER),
    "another event": GOOD._replace(topics=(AUTHORIZATION_USED, *GOOD.topics[1:])),
    "an indexed amount, as of a collectible": GOOD._replace(topics=(*GOOD.topics, bytes(32))),
    "too few topics": GOOD._replace(topics=GOOD.topics[:2]),
    "no topics": GOOD._replace(topics=()),
    "more data": GOOD._replace(data=GOOD.data + bytes(32)),
    "no data": GOOD._replace(data=b""),
    "an address with a dirty upper half": GOOD._replace(topics=(*GOOD.topics[:2], b"\1" + GOOD.topics[2][1:])),
    "a payer with a dirty upper half": GOOD._replace(topics=(TRANSFER, b"\1" * 32, GOOD.topics[2])),
    "another recipient": transfer_log(OTHER, 5),
}


@proves("purchase.usdc-only")
@pytest.mark.parametrize("log", FORGED.values(), ids=FORGED.keys())
def test_what_only_looks_like_a_transfer_is_none(log):
    assert match_deposit(receipt(log), US) is None
    assert match_deposit(receipt(log, GOOD), US) == MatchedPayment(5_000_000, (3,), frozenset({PAYER}))


@given(
    st.lists(
        st.tuples(st.sampled_from([US, OTHER]), st.sampled_from([USDC, OTHER]), st.integers(0, 2**256 - 1)), max_size=8
    )
)
def test_the_sum_is_that_of_the_right_logs_and_of_no_others(drawn):
    logs = [
        Log(token, (TRANSFER, word(PAYER), word(to)), amount.to_bytes(32, "big"), i)
        for i, (to, token, amount) in enumerate(drawn)
    ]
    right = [amount for to, token, amount in drawn if (to, token) == (US, USDC) and amount <= MOST]
    found = match_deposit(receipt(*logs), US)
    assert (found.amount if found else None) == (sum(right) if right else None)


# --- where one address is shared


def with_proof(*logs, sent=None, signers=frozenset()):
    found = match_with_proof(receipt(*logs), sent or Transaction(OTHER, b""), US, Proofs(MARK, signers))
    return found.amount if found else None


def test_without_proof_a_transfer_to_the_shared_address_is_nobodys():
    assert with_proof(GOOD) is None


def test_an_authorization_under_the_commitment_is_proof_whoever_submitted_it():
    assert with_proof(GOOD, authorization()) == 5_000_000


@pytest.mark.parametrize(
    "log",
    [authorization(OTHER), authorization(nonce=commitment("svc_buy_" + "00" * 16)), authorization(token=OTHER)],
    ids=["of somebody else", "for another purchase", "of another token"],
)
def test_another_authorization_is_no_proof(log):
    assert with_proof(GOOD, log) is None


def test_a_signature_of_the_payer_is_proof_for_what_that_payer_sent():
    theirs = transfer_log(US, 70, 5, payer=OTHER)
    assert with_proof(GOOD, theirs, signers=frozenset({PAYER})) == 5_000_000
    assert with_proof(GOOD, theirs, signers=frozenset({PAYER, OTHER})) == 75_000_000


def test_a_call_that_carries_the_commitment_is_proof():
    assert with_proof(GOOD, sent=call()) == 5_000_000


@pytest.mark.parametrize(
    "sent",
    [
        call(tail=commitment("svc_buy_" + "00" * 16)),
        call(tail=b""),
        call(tail=MARK + b"more"),
        call(to=OTHER),
        call(token=OTHER),
        Transaction(USDC, b"\0\0\0\0" + call().data[4:]),
        Transaction(None, call().data),
        Transaction(USDC, TRANSFER_SELECTOR + word(US) + MARK),
    ],
    ids=[
        "another commitment",
        "none",
        "not at the end",
        "another recipient",
        "another token",
        "another call",
        "no recipient",
        "too short",
    ],
)
def test_another_call_is_no_proof(sent):
    assert with_proof(GOOD, sent=sent) is None


def test_a_commitment_in_a_call_says_nothing_about_several_payers():
    theirs = transfer_log(US, 70, 5, payer=OTHER)
    assert with_proof(GOOD, theirs, sent=call()) is None
    assert with_proof(GOOD, theirs, authorization(), sent=call()) == 5_000_000


def test_more_than_there_is_was_not_sent():
    """Nor could it be stored."""
    most = Log(USDC, (TRANSFER, word(PAYER), word(US)), MOST.to_bytes(32, "big"), 0)
    assert match_deposit(receipt(most), US).amount == MOST
    assert match_deposit(receipt(most._replace(data=(MOST + 1).to_bytes(32, "big"))), US) is None


# --- the memo is a secret


@pytest.mark.parametrize(
    ("data", "public"),
    [
        (call().data, False),
        (call(tail=MEMO.encode()).data, True),
        (call(tail=MEMO[8:].encode()).data, True),
        (call(tail=MEMO.upper().encode()).data, True),
        (call(tail=bytes.fromhex(MEMO[8:])).data, True),
        (b"", False),
    ],
)
def test_a_memo_on_the_chain_is_noticed(data, public):
    assert says_memo(Transaction(USDC, data), MEMO) is public


def test_the_commitment_is_the_same_for_ever():
    """Buyers may have put it on the chain: it must not change."""
    assert commitment("svc_buy_" + "0" * 32).hex() == (
        "43dc83d9ba08a622c8eae3432475849d371896a3b2a3bd279dcf027b6371fca3"
    )


def mark_at(index: int, payer: bytes = PAYER, token: bytes = USDC) -> Log:
    return authorization(payer, token=token)._replace(log_index=index)


MOVED = AuthorizedTransfer(PAYER, US, 5_000_000, MARK)


@pytest.mark.parametrize(
    ("logs", "found"),
    [
        ((mark_at(2), GOOD), [MOVED]),
        ((GOOD, mark_at(2), mark_at(2)), [MOVED]),
        ((mark_at(2, token=OTHER), GOOD), []),
        ((mark_at(2, OTHER), GOOD), []),
        ((mark_at(4), GOOD), []),
        ((mark_at(1), transfer_log(OTHER, 1, 2), GOOD), [AuthorizedTransfer(PAYER, OTHER, 1_000_000, MARK)]),
        ((mark_at(1), Log(OTHER, (), b"", 2), GOOD), [MOVED]),
    ],
    ids=[
        "in order",
        "listed twice",
        "another contract",
        "another payer",
        "after it",
        "the first one",
        "others between",
    ],
)
def test_an_authorised_transfer_is_the_log_of_the_token_after_its_mark(logs, found):
    assert authorized_transfers(receipt(*logs)) == found
    assert authorized_transfers(receipt(*logs, status=0)) == []
