"""Lists cut to the length that a caller wants."""

from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from toolserver.context.context import Cursor, Page, cut_page, up_to
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
    assert refused.value.extra["errors"] == [
        {"loc": "cursor", "msg": "not in this list, or no longer", "type": "unknown_cursor"}
    ]


def test_where_an_item_is_the_last_one_and_where_nothing_is_shown_there_is_no_next_page():
    assert cut_page(ITEMS, 2, cursor="c", mark=str) == Page(["d", "e"], 5, None)
    assert cut_page(ITEMS, 2, cursor="e", mark=str) == Page([], 5, None)
    assert cut_page(ITEMS, 0, mark=str) == Page([], 5, None)


def test_the_cursor_is_the_mark_of_the_last_item_shown():
    assert cut_page(ITEMS, 2, mark=lambda item: f"<{item}>").next_cursor == "<b>"
    assert cut_page(ITEMS, 2, cursor="<b>", mark=lambda item: f"<{item}>").items == ["c", "d"]


def test_a_limit_is_from_one_item_to_the_most_that_the_tool_lists():
    limit = TypeAdapter(Annotated[int, up_to(3)])
    assert limit.json_schema() == {"type": "integer", "minimum": 1, "maximum": 3, "description": "Most items"}
    assert [limit.validate_python(number) for number in (1, 3)] == [1, 3]


@pytest.mark.parametrize(
    ("text", "fits"), [("!", True), ("~" * 100, True), ("", False), ("a b", False), ("a" * 101, False)]
)
def test_a_cursor_is_at_most_a_hundred_visible_characters(text, fits):
    cursor = TypeAdapter(Cursor)
    if fits:
        assert cursor.validate_python(text) == text
    else:
        with pytest.raises(ValidationError):
            cursor.validate_python(text)
