"""Lists cut to the length that a caller wants."""

import pytest

from toolserver.context.paging import Page, cut_page
from toolserver.errors import InvalidArguments

ITEMS = ["a", "b", "c", "d", "e"]


def test_a_list_that_fits_is_shown_whole():
    assert cut_page(ITEMS, 5, mark=str) == Page(ITEMS, 5, None)
    assert cut_page([], 5, mark=str) == Page([], 0, None)


def test_pages_follow_each_other_and_the_last_has_no_cursor():
    first = cut_page(ITEMS, 2, mark=str)
    second = cut_page(ITEMS, 2, cursor=first.next_cursor, mark=str)
    third = cut_page(ITEMS, 2, cursor=second.next_cursor, mark=str)
    assert (first, second, third) == (Page(["a", "b"], 5, "b"), Page(["c", "d"], 5, "d"), Page(["e"], 5, None))


def test_what_is_new_at_the_top_moves_no_page():
    assert cut_page(["new", *ITEMS], 2, cursor="b", mark=str).items == ["c", "d"]


def test_without_a_mark_there_is_no_next_page():
    assert cut_page(ITEMS, 2) == Page(["a", "b"], 5, None)


def test_a_cursor_that_is_nowhere_is_refused():
    with pytest.raises(InvalidArguments) as refused:
        cut_page(ITEMS, 2, cursor="z", mark=str)
    assert refused.value.extra["errors"][0]["loc"] == "cursor"
