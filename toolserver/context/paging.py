"""Cuts lists to the length that a caller requests, starting where the previous page ended.

    limit: Annotated[int, up_to(100)] = 20
    shown = ctx.page(found, limit)

A tool with a list takes `limit`, whose default keeps the answer within 8,000 tokens; a tool with a long list also takes
`cursor`. If items are left out, a warning gives the total.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from toolserver.errors import InvalidArguments

T = TypeVar("T")

Cursor = Annotated[
    str, Field(pattern=r"^[!-~]{1,100}$", description="`next_cursor` of the page before", examples=["us7000abcd"])
]
"""The argument for the start of the next page: the mark of the last item shown, so that newer items do not matter."""


def up_to(most: int) -> Any:
    """Return the bounds and description of an argument `limit`: a tool lists 1 to `most` items."""
    return Field(ge=1, le=most, description="Most items to list")


class Page(NamedTuple, Generic[T]):
    """The items shown, the total number of items, and the cursor of the next page, if there is one."""

    items: list[T]
    total: int
    next_cursor: str | None = None


def cut_page(
    items: Sequence[T], limit: int, *, cursor: str | None = None, mark: Callable[[T], str] | None = None
) -> Page[T]:
    """Return the first `limit` items after the one whose mark is the cursor.

    Raises:
        InvalidArguments: no item has that mark, or no longer.
    """
    start = 0
    if cursor is not None and mark is not None:
        start = next((n for n, item in enumerate(items, 1) if mark(item) == cursor), 0)
        if start == 0:
            error = {"loc": "cursor", "msg": "not in this list, or no longer", "type": "unknown_cursor"}
            raise InvalidArguments("The cursor is no longer in this list. Start again without it.", errors=[error])
    shown = list(items[start : start + limit])
    is_last = start + limit >= len(items) or mark is None or not shown
    return Page(shown, len(items), None if is_last or mark is None else mark(shown[-1]))
