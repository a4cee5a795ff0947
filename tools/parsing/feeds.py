"""Headlines of RSS feeds, dated."""

from datetime import datetime
from typing import NamedTuple


class Headline(NamedTuple):
    """A title, where it leads, and when it was published."""

    title: str
    url: str | None
    at: datetime


def newest_headline(headlines: tuple[Headline, ...]) -> datetime | None:
    return max((headline.at for headline in headlines), default=None)
