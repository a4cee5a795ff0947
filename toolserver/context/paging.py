"""Cuts lists to the length that a caller wants, from where the page before ended.

    limit: Annotated[int, up_to(100)] = 20
    shown = ctx.page(found, limit)

A tool that has a list takes `limit`, with a default by which its answer is at most 8,000 tokens long; one whose list
is long also takes `cursor`. A warning says of how many, when something is left out.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from toolserver.errors import InvalidArguments

T = TypeVar("T")

Cursor = Annotated[
    str, Field(pattern=r"^[!-~]{1,100}$", description="`next_cursor` of the page before", examples=["us7000abcd"])
]
"""An argument: where the next page begins. It is the mark of the last item shown, so it survives newer items."""


def up_to(most: int) -> Any:
    """The bounds and the meaning of an argument `limit`: a tool lists 1 to `most` items."""
    return Field(ge=1, le=most, description="Most items to list")


class Page(NamedTuple, Generic[T]):
    """The items shown, how many there are in all, and the cursor of the next page if there is one."""

    items: list[T]
    total: int
    next_cursor: str | None = None


def cut_page(
    items: Sequence[T], limit: int, *, cursor: str | None = None, mark: Callable[[T], str] | None = None
) -> Page[T]:
    """The first `limit` items after the one whose mark is the cursor.

    Raises:
        InvalidArguments: no item has that mark (any more).
    """
    start = 0
    if cursor is not None and mark is not None:
        start = next((n for n, item in enumerate(items, 1) if mark(item) == cursor), 0)
        if start == 0:
            error = {"loc": "cursor", "msg": "Not in this list, or not any more", "type": "unknown_cursor"}
            raise InvalidArguments("The cursor is not in this list (any more): start again without it.", errors=[error])
    shown = list(items[start : start + limit])
    is_last = start + limit >= len(items) or mark is None or not shown
    return Page(shown, len(items), None if is_last or mark is None else mark(shown[-1]))
