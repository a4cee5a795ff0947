"""A mark is of one value under one name, by one secret."""

from itertools import pairwise

import pytest

from toolserver.core.shared_seal import MARK_BYTES, SharedSeal

SEAL = SharedSeal(b"secret")
VALUE = (b"name", b"a", b"bc")


@pytest.mark.parametrize(
    "other",
    [
        (b"nam", b"ea", b"bc"),
        (b"name", b"ab", b"c"),
        (b"name", b"a", b"b", b"c"),
        (b"name", b"abc"),
        (b"name", b"a", b"bd"),
        (b"name", b"a", b"bc", b""),
    ],
)
def test_a_mark_is_of_these_parts_and_no_others(other):
    mark = SEAL.mark(*VALUE)
    assert (len(mark), SEAL.is_ours(mark, *VALUE), SEAL.is_ours(mark, *other)) == (MARK_BYTES, True, False)


def test_a_mark_of_another_secret_and_one_that_is_cut_off_count_for_nothing():
    mark = SEAL.mark(*VALUE)
    assert SharedSeal(b"secret").is_ours(mark, *VALUE), "all instances have the secret"
    assert not SharedSeal(b"another").is_ours(mark, *VALUE)
    assert not any(SEAL.is_ours(mark[:size], *VALUE) for size, _ in pairwise(range(MARK_BYTES + 1)))
