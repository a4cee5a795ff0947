"""The state of a transfer, decided from facts alone: exactly one for every combination of them, as this table says."""

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolserver.money.chain.transfer_states import (
    SETTLED_BLOCKS,
    STATES,
    Dust,
    QuotedAddress,
    SignedPayment,
    TransferFacts,
    decide_state,
    find_final,
    is_final_enough,
    name_transfers,
)
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import BlockHead, ChainHeads, LoggedTransfer, Policy
from toolserver.money.purchases.units import LEAST

ENDS = 1_000
OPEN, TAKEN = QuotedAddress(ENDS, is_credited=False), QuotedAddress(ENDS, is_credited=True)
SIGNED, OWED, SETTLING = SignedPayment(True, False), SignedPayment(True, True), SignedPayment(False, True)
EVERY = [
    TransferFacts(*flags, signed, purchase, paid, block_time)  # type: ignore[arg-type]
    for flags in product((False, True), repeat=8)
    for signed in (None, SIGNED, OWED, SETTLING)
    for purchase in (None, OPEN, TAKEN)
    for paid in (LEAST - 1, LEAST)
    for block_time in (ENDS, ENDS + 1)
]


def states_by_the_table(f: TransferFacts) -> list[str]:
    """Every line of the table that fits, each with all its conditions, so that the order of the lines says nothing."""
    settled = f.signed is not None and f.signed.is_settled
    here = not f.is_gone
    ours = here and not (f.is_swept or f.is_refund)
    waits = f.is_held or f.is_disputed
    bought = f.is_credited or settled
    bare = ours and not waits and not bought and f.signed is None and f.is_final
    quote = f.purchase if f.is_inward else None
    free = quote is not None and not quote.is_credited
    late = quote is not None and f.block_time > quote.ends_at
    table = {
        "undone": f.is_gone,
        "swept": here and f.is_swept,
        "refunded": here and f.is_refund and not f.is_swept,
        "held": ours and (waits or (not f.is_credited and f.signed is not None and settled and f.signed.is_case)),
        "credited": ours
        and not waits
        and (f.is_credited or (settled and f.signed is not None and not f.signed.is_case)),
        "pending": ours and not waits and not bought and (f.signed is not None or not f.is_final),
        "foreign": bare and quote is None,
        "second": bare and quote is not None and quote.is_credited,
        "short": bare and free and f.paid < LEAST,
        "late": bare and free and f.paid >= LEAST and late,
        "quoted": bare and free and f.paid >= LEAST and not late,
    }
    return [state for state, fits in table.items() if fits]


def test_every_combination_of_facts_has_exactly_the_state_of_the_table():
    reached = Counter()
    for facts in EVERY:
        (state,) = states_by_the_table(facts)
        assert decide_state(facts) == state, facts
        reached[state] += 1
    assert reached.keys() == set(STATES)


def logged(tx: int, payer: int, payee: int, amount: int, block: int = 7, index: int = 0, fork: int = 0):
    hashes = bytes([tx]) * 32, bytes([block, fork]) * 16
    return LoggedTransfer(hashes[0], bytes([payer]) * 20, bytes([payee]) * 20, amount, block, hashes[1], index, None)


TRANSFERS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(1, 2)), max_size=12)


@given(TRANSFERS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_a_transfer_keeps_its_name_when_its_transaction_is_mined_again_elsewhere(terms, moved, rng: random.Random):
    one = [logged(*each, index=index) for index, each in enumerate(terms)]
    again = [
        each._replace(block_number=7 + moved, block_hash=bytes(32), log_index=each.log_index + moved) for each in one
    ]
    rng.shuffle(again)
    names = {each.logged.log_index: each.id for each in name_transfers(one)}
    assert len(set(names.values())) == len(one)
    assert {each.logged.log_index - moved: each.id for each in name_transfers(again)} == names


@given(TRANSFERS)
def test_a_log_that_two_requests_return_is_one_transfer(terms):
    one = [logged(*each, index=index) for index, each in enumerate(terms)]
    assert name_transfers([*one, *reversed(one)]) == name_transfers(one)


@pytest.mark.parametrize(
    ("usd", "depth", "final"),
    [(1, 2, False), (1, 3, True), (100, 9, False), (100, 10, True), (10_000, 19, False), (10_000, 20, True)],
)
def test_finality_is_that_of_confirmations(usd, depth, final):
    heads = ChainHeads(BlockHead(1000, bytes(32), 0), 990, 980)
    assert is_final_enough(Policy(), heads, 1000 - depth, usd * ATOMIC) == final


def test_where_a_server_does_not_say_what_is_final_an_hour_of_blocks_is():
    latest = BlockHead(10_000, bytes(32), 0)
    assert find_final(ChainHeads(latest, 0, 0)) == 10_000 - SETTLED_BLOCKS
    assert find_final(ChainHeads(latest, 0, 9_900)) == 9_900
    assert find_final(ChainHeads(BlockHead(5, bytes(32), 0), 0, 0)) == 0


def test_dust_is_summed_by_direction_and_nothing_is_counted_apart():
    dust = Dust().add(logged(1, 1, 2, 5), outward=False).add(logged(1, 1, 2, 3, block=8), outward=True)
    assert dust.add(logged(1, 1, 2, 0, block=9), outward=True) == Dust(1, 5, 1, 3, 1, 9)
