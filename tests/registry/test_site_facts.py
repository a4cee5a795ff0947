"""The words of documents."""

from dataclasses import replace

import pytest

from tests.catalog.tiny import TINY
from toolserver.registry.site_facts import duration, price


@pytest.mark.parametrize(
    ("seconds", "words"), [(30, "30 s"), (90, "90 s"), (60, "1 min"), (3600, "1 h"), (86400, "1 d")]
)
def test_durations_use_the_largest_unit_that_fits(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(("credits", "words"), [(0, "free"), (1, "1 credit"), (2, "2 credits")])
def test_a_price_is_in_credits_or_it_is_free(credits, words):
    assert price(replace(TINY["digest"], credits=credits)) == words
