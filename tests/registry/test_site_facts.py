"""The words of documents."""

import pytest

from toolserver.registry.site_facts import duration


@pytest.mark.parametrize(
    ("seconds", "words"), [(30, "30 s"), (90, "90 s"), (60, "1 min"), (3600, "1 h"), (86400, "1 d")]
)
def test_durations_use_the_largest_unit_that_fits(seconds, words):
    assert duration(seconds) == words
