"""Describe the dated headlines of RSS feeds."""

from datetime import datetime
from typing import NamedTuple


class Headline(NamedTuple):
    """A title, its link, and when it was published."""

    title: str
    url: str | None
    at: datetime


def newest_headline(headlines: tuple[Headline, ...]) -> datetime | None:
    return max((headline.at for headline in headlines), default=None)
