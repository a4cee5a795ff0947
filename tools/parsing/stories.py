"""Describe a submission to Hacker News, from either of its interfaces."""

from datetime import datetime
from typing import NamedTuple


class Story(NamedTuple):
    """One submission. `url` is None for text posts; `comments` is None when the provider does not count them."""

    id: int
    title: str
    url: str | None
    points: int
    comments: int | None
    author: str | None
    created_at: datetime
