"""The recursion limit while foreign libraries are imported."""

import sys

import pytest

from toolserver.core.import_guard import recursion_limit_kept


def test_inside_nobody_changes_the_recursion_limit_and_afterwards_one_may_again():
    before, change = sys.getrecursionlimit(), sys.setrecursionlimit
    with recursion_limit_kept():
        sys.setrecursionlimit(100_000)
        assert sys.getrecursionlimit() == before
    assert sys.setrecursionlimit is change


def test_a_failed_import_leaves_the_interpreter_as_it_was():
    change = sys.setrecursionlimit
    with pytest.raises(ImportError), recursion_limit_kept():
        raise ImportError("no such library")
    assert sys.setrecursionlimit is change
