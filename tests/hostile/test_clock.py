"""The short form of `python -m tests.hostile.clock`: nobody pays twice or loses a token when the clock jumps."""

import pytest

from tests.hostile.clock import DAY, JUMPS, Jump, run_matrix

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


def test_jumps_of_the_clock_charge_nobody_twice_and_end_no_token(tmp_path):
    matrix = run_matrix(tmp_path)
    print(*matrix.jumps, sep="\n")
    assert [jump.seconds for jump in matrix.jumps] == list(JUMPS)
    assert matrix.bought == len(JUMPS)
    assert matrix.charged >= 2 * len(JUMPS)
    assert matrix.fired > 0
    assert matrix.wrong == []


@pytest.mark.parametrize(
    ("jump", "count"),
    [
        (Jump(-DAY, 200, 200, 200, 200, same=True), 0),
        (Jump(DAY, 200, 200, 200, 200, same=False), 0),
        (Jump(3600, 200, 200, 200, 200, same=False), 1),
        (Jump(3600, 200, 402, 200, 503, same=True), 2),
    ],
)
def test_a_row_is_wrong_for_a_refusal_and_for_a_call_that_was_sold_twice(jump, count):
    assert len(jump.wrong) == count
