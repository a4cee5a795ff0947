"""YAML is read as text, lists and mappings, and what would take too long or too deep is refused."""

import pytest

from tools.parsing.yaml import DEEPEST, MOST_EVENTS, MOST_ITEMS, read_yaml, split_items


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


def test_an_item_that_is_not_yaml_leaves_the_others_as_they_were():
    first, broken, last = split_items("# head\n- a: 1\n  b: 2\n- a\n  b: [\n- a: 3\n")

    assert [read_yaml(first), read_yaml(last)] == [[{"a": "1", "b": "2"}], [{"a": "3"}]]
    with pytest.raises(ValueError, match="not YAML"):
        read_yaml(broken)


def test_more_items_than_one_list_has_are_refused():
    assert len(split_items("- a\n" * MOST_ITEMS)) == MOST_ITEMS
    with pytest.raises(ValueError, match="too many"):
        split_items("- a\n" * (MOST_ITEMS + 1))
    with pytest.raises(ValueError, match="no list"):
        split_items("a: 1\n")
