"""One seeded month on the simulated chain, with every kind of payment and failure in it."""

from pathlib import Path

import pytest

from tests.month.seeded import KINDS, live_month

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


def test_a_month_of_every_kind_of_payment_ends_as_expected_and_planted_differences_alone_are_found(
    tmp_path: Path,
) -> None:
    month = live_month(tmp_path, seed=1, steps=len(KINDS), samples=40)
    assert month.wrong == []
    assert set(month.kinds) == set(KINDS)
    assert (month.demo.kills, month.compared_blocks) == (1, 40)
