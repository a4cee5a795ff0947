"""docs/operators-month.md, followed to the letter: its commands run one after the other, and the sums are compared."""

from pathlib import Path

import pytest

from tests.month.walk import Walk, check

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


def test_a_month_whose_commands_run_twice_and_are_killed_once_has_the_books_of_its_payments(tmp_path: Path) -> None:
    walk = Walk(tmp_path, twice=True, killed=True)
    walk.run(within_s=850)
    check(walk)
