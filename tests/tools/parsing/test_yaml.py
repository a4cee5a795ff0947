"""YAML is read as text, lists and mappings, and what would take too long or too deep is refused."""

import pytest

from tools.parsing.yaml import DEEPEST, MOST_EVENTS, read_yaml


def test_scalars_stay_text_and_comments_are_none():
    text = '# head\n- a: 1 # one\n  b: "x # y"\n  c: yes\n  d: {e: [2027-01-01, ~]}\n- f:\n'
    assert read_yaml(text) == [{"a": "1", "b": "x # y", "c": "yes", "d": {"e": ["2027-01-01", "~"]}}, {"f": ""}]
    assert read_yaml("") is None


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "a: 1\n---\nb: 2\n", "\t- a", "[*missing]", "{a: 1"])
def test_what_is_no_single_document_is_refused(text):
    with pytest.raises(ValueError, match="not YAML"):
        read_yaml(text)


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "? "])
def test_a_text_that_nests_a_million_times_is_refused_and_does_not_end_the_process(opening):
    with pytest.raises(ValueError, match="too deep"):
        read_yaml(opening * 1_000_000)


def test_the_deepest_and_the_longest_text_that_are_read():
    assert read_yaml("[" * DEEPEST + "]" * DEEPEST)
    with pytest.raises(ValueError, match="too deep"):
        read_yaml("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    assert len(read_yaml("- a\n" * (MOST_EVENTS - 10))) == MOST_EVENTS - 10
    with pytest.raises(ValueError, match="too many"):
        read_yaml("- a\n" * MOST_EVENTS)


def test_no_tag_makes_an_object():
    assert read_yaml("!!python/object/apply:os.system [echo]") == ["echo"]
