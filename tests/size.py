"""Set the size of the tests of this run: small in the fast set, large with REQUIRE=all, maximal with LONG=1.

`LONG=1 make test ARGS=tests/live/test_ledger_crash.py` kills two hundred processes; the full set kills thirty.
"""

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
EVERYTHING = os.environ.get("REQUIRE") == "all"
LONG = os.environ.get("LONG") == "1"


def sized(full: T, *, fast: T, long: T | None = None) -> T:
    """The size of a test for this run."""
    if LONG:
        return full if long is None else long
    return full if EVERYTHING else fast


def a_share(cases: Iterable[Any], each: int, *, first: int = 0) -> list[Any]:
    """All cases of a matrix, for `parametrize`: the fast set has one of `each`, from the `first` on, the rest is slow.

    Tests of the same cases take different ones first, so that the fast set tries each case somewhere.
    """
    slow = pytest.mark.slow(f"cases of a matrix of which the fast set has one in {each}")
    given = (case if type(case) is tuple else (case,) for case in cases)
    return [pytest.param(*case, marks=() if n % each == first else slow) for n, case in enumerate(given)]
