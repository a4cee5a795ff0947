"""The short form of `python -m tests.hostile.reorgs`: credits go exactly where payments are gone; lies are bounded."""

import pytest

from tests.hostile.reorgs import CEILING, DEEPEST, Lie, Row, judge, run_all
from tests.money.x402.chain import program
from tests.size import sized

DEPTHS = sized(tuple(range(1, DEEPEST + 1)), fast=(2, 4))


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_reorganisations_take_back_what_the_policy_says_and_a_lying_server_is_bounded_and_found(tmp_path):
    program()
    rows, lies = await run_all(tmp_path, DEPTHS)
    assert len(rows) == 2 * 8 * len(DEPTHS)
    assert any(row.before > row.after for row in rows)
    assert any(row.before == row.after > 0 for row in rows)
    assert judge(rows, lies) == []


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (Row("c", 16, "transfer", 5, 4, 3, 250, 0), True),
        (Row("c", 16, "transfer", 5, 4, 3, 250, 250), False),
        (Row("c", 16, "transfer", 5, 4, 4, 250, 0), False),
        (Row("c", 16, "transfer", 5, 4, 2, 250, 0), False),
        (Row("c", 16, "x402", 150, 4, 4, 7500, 7500), False),
        (Row("c", 16, "x402", 150, 4, 18, 7500, 7500), True),
    ],
)
def test_a_row_is_right_where_it_obeys_the_policy(row, right):
    assert row.is_right == right


@pytest.mark.parametrize("lie", [Lie(CEILING + 5, 9, 9, 20), Lie(40, 8, 7, 20), Lie(40, 8, 8, 80), Lie(0, 0, 0, 0)])
def test_a_lie_that_sells_too_much_or_is_found_late_is_wrong(lie):
    assert judge([], [lie]) == [str(lie)]
