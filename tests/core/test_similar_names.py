"""Names that a wrong one may have been meant for."""

import difflib
import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from toolserver.core.similar_names import find_similar

NAMES = ["btc_price", "bitcoin_network", "gas", "earthquakes", "earthquake_detail", "weather", "weather_alerts"]


def test_a_misspelt_name_finds_the_one_that_was_meant():
    assert find_similar("btc_prise", NAMES)[0] == "btc_price"
    assert find_similar("earthquake", NAMES)[0] == "earthquakes"
    assert find_similar("wether", NAMES, most=1) == ["weather"]


def test_a_name_that_is_like_none_finds_nothing():
    assert find_similar("zzz", NAMES) == []
    assert find_similar("", NAMES) == []


def test_the_nearest_are_given_whatever_their_likeness_when_none_is_asked_for():
    assert len(find_similar("zzz", NAMES, most=2, least=0.0)) == 2


def test_a_very_long_name_is_cut_before_it_is_compared():
    assert find_similar("btc_price" + "x" * 1_000_000, ["btc_price" + "x" * 191]) == ["btc_price" + "x" * 191]


@given(st.text("abcdef_", max_size=12))
@example("btc")
def test_the_likeness_is_at_least_that_of_the_standard_library(word: str):
    everything = find_similar(word, NAMES, most=len(NAMES))

    assert {*difflib.get_close_matches(word, NAMES, n=len(NAMES), cutoff=0.6)} <= {*everything}


def test_the_library_is_loaded_by_the_first_wrong_name_only():
    said = "import sys, toolserver.core.similar_names; print('rapidfuzz' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", said], capture_output=True, text=True).stdout == "False\n"
