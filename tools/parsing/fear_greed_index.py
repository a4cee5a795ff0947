"""Read an index between fear and greed."""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import number, within
from toolserver import SourceChanged


class FearGreed(NamedTuple):
    """An index between 0 (extreme fear) and 100 (extreme greed), with the publisher's own label.

    `days` are the values of the days that the publisher lists, oldest first; a day without a sound value is left out.
    """

    value: int
    label: str
    updated_at: datetime
    previous_value: int | None = None
    next_update_at: datetime | None = None
    days: tuple[tuple[datetime, int], ...] = ()


def read_score(value: Any, label: str) -> int:
    """Return a whole number from 0 to 100. Raises SourceChanged for a 0 without the label
    "extreme fear": that is a fault.
    """
    read = round(within(number(value), 0, 100))
    if read == 0 and label.casefold() != "extreme fear":
        raise SourceChanged(f"value 0 is called {label!r:.40}")
    return read
