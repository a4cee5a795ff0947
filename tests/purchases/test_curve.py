"""The table gives the very points that the plain multiplication gives, at a fraction of its time."""

import time

import pytest
from eth_keys.backends.native.jacobian import fast_add, fast_multiply
from eth_keys.constants import SECPK1_G, SECPK1_N, SECPK1_P
from hypothesis import given
from hypothesis import strategies as st

from tests.cpu_time import PIECE_S, do_piece
from toolserver.purchases.curve import add_multiple
from toolserver.purchases.demo import XPUB
from toolserver.purchases.deposit import DepositKey

OTHER = fast_multiply(SECPK1_G, 7)


@given(st.integers(1, SECPK1_N - 8))
def test_it_is_the_sum_of_the_multiple_and_the_point(factor):
    assert add_multiple(factor, OTHER) == fast_add(fast_multiply(SECPK1_G, factor), OTHER)


@pytest.mark.parametrize("factor", [1, 7, 15, 16, 2**255, SECPK1_N - 1])
def test_factors_at_the_edges(factor):
    assert add_multiple(factor, OTHER) == fast_multiply(SECPK1_G, factor + 7)


def test_nothing_added_is_the_point_and_its_opposite_is_no_point():
    assert add_multiple(0, OTHER) == OTHER
    assert add_multiple(SECPK1_N - 7, OTHER) == (0, 0)
    assert add_multiple(SECPK1_N - 7, (OTHER[0], SECPK1_P - OTHER[1])) == fast_multiply(SECPK1_G, SECPK1_N - 14)


def test_the_sum_may_pass_through_the_point_at_infinity():
    opposite = (fast_multiply(SECPK1_G, 5)[0], SECPK1_P - fast_multiply(SECPK1_G, 5)[1])
    assert add_multiple(5 + 2**8 * 9, opposite) == fast_multiply(SECPK1_G, 2**8 * 9)


def test_an_address_costs_less_than_half_a_millisecond_of_cpu():
    key = DepositKey(XPUB)
    best = float("inf")
    for start in range(0, 100, 20):
        begun = time.process_time()
        for index in range(start, start + 20):
            key.address(index)
        best = min(best, (time.process_time() - begun) / 20)
    assert best < 0.0005 * max(1.0, min(do_piece() for _ in range(3)) / PIECE_S)  # other work slows both alike
