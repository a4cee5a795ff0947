"""The table gives the very points that the plain multiplication gives, at a fraction of its time."""

import pytest
from eth_keys.backends.native.jacobian import fast_add, fast_multiply
from eth_keys.constants import SECPK1_G, SECPK1_N, SECPK1_P
from hypothesis import given
from hypothesis import strategies as st

from tests.work import counted
from toolserver.money.purchases import curve
from toolserver.money.purchases.curve import add_multiple
from toolserver.money.purchases.demo import XPUB
from toolserver.money.purchases.deposit import DepositKey

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


def test_an_address_takes_one_addition_for_each_byte_of_its_factor(monkeypatch):
    """Half a millisecond of CPU; the plain multiplication doubles 256 times and adds half as often."""
    key, added = DepositKey(XPUB), []
    key.address(0)  # makes the table
    add = curve._add
    monkeypatch.setattr(curve, "_add", lambda total, point: added.append(point) or add(total, point))
    with counted() as work:
        for index in range(20):
            key.address(index)
    print(f"{len(added) / 20} additions and {work.calls / 20} calls of functions for an address")
    assert len(added) <= 20 * 32
    assert work.calls / 20 < 230
