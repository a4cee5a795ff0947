"""Ranking by everyday words: weights, rarity, typing errors and synonyms."""

import pytest

from toolserver.core.text_search import SIMILAR, SYNONYM, TextIndex, count_words, split_words, stem

TEXTS = [
    count_words([(3.0, "Stocks"), (1.0, "the price of shares, one by one")]),
    count_words([(3.0, "Weather"), (1.0, "the price of rain")]),
    count_words([(1.0, "rain and more rain, and stocks of water")]),
]
INDEX = TextIndex(TEXTS, {"tesla": "stocks", "drizzle": "rain weather"})


def order(query: str) -> list[int]:
    scores = INDEX.score(INDEX.read(query))
    return sorted(scores, key=lambda at: -scores[at])


def test_a_word_counts_by_where_it_stands_and_once_in_each_part():
    assert TEXTS[0][stem("stocks")] == 3.0
    assert TEXTS[2][stem("rain")] == 1.0
    assert order("stocks") == [0, 2]


def test_a_rare_word_counts_more_than_a_common_one():
    assert order("price shares")[0] == 0
    assert order("price weather")[0] == 1


@pytest.mark.parametrize("query", ["stokcs", "stock", "STOCKS!"])
def test_typing_errors_and_endings_do_not_matter(query):
    assert order(query)[0] == 0


def test_a_synonym_counts_less_than_the_word_itself_and_a_misspelt_one_still_less():
    assert INDEX.read("tesla") == {"stock": SYNONYM}
    assert INDEX.read("telsa") == {"stock": SYNONYM * SIMILAR}
    assert INDEX.read("tesla stocks") == {"stock": 1.0}
    assert INDEX.read("drizzle").keys() == {"rain", "weath"}


def test_what_no_text_has_is_nothing():
    assert INDEX.read("the of") == INDEX.read("xyzzyx") == {}
    assert INDEX.score({}) == {}
    assert TextIndex([]).read("stocks") == {}


def test_words_without_meaning_are_left_out():
    assert split_words("What is the price of it?") == ["pric"]
