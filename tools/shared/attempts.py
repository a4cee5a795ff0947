"""Sections read side by side, where the whole fails only when every part does."""

from typing import TypeVar

from toolserver.context import Leg, ToolContext
from toolserver.errors import SourceError

T = TypeVar("T")


async def attempt(ctx: ToolContext, section: str, *legs: Leg[T]) -> T | SourceError:
    """The first leg's value, or the error that `ctx.first` raises. The warning is left either way."""
    try:
        return await ctx.first(section, *legs)
    except SourceError as error:
        return error
