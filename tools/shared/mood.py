"""Read the mood of the crypto market from one of two Fear & Greed indices, by name, since they
differ by several points.
"""

from datetime import datetime
from typing import Literal, NamedTuple

from tools.parsing.fear_greed_index import FearGreed
from tools.sources.alternative_me import FEAR_GREED as ALTERNATIVE_ME
from tools.sources.coinmarketcap import FEAR_GREED as COINMARKETCAP
from toolserver import DayLine, Definition, Fallback, Meaning, via

IndexName = Literal["alternative.me", "coinmarketcap"]
FEAR_GREED_SOURCES = (ALTERNATIVE_ME, COINMARKETCAP)

FEAR_GREED_DAYS = (DayLine(ALTERNATIVE_ME, None, lambda read: read.days),)
"""Where the past month of alternative.me's index is kept; the other index's values are not comparable to it."""


class Mood(NamedTuple):
    """A reading of one index: 0 is extreme fear, 100 extreme greed; the label is the publisher's."""

    value: int
    label: str
    index_name: IndexName
    as_of: datetime
    previous_value: int | None
    next_update_at: datetime | None


def fear_greed_fallbacks() -> tuple[Fallback[Mood], ...]:
    """Return the fallbacks: alternative.me, then CoinMarketCap where its key is set."""
    return (
        via(ALTERNATIVE_ME, None, lambda read: mood(read, "alternative.me")),
        via(COINMARKETCAP, None, lambda read: mood(read, "coinmarketcap")),
    )


def mood(read: FearGreed, index_name: IndexName) -> Mood:
    return Mood(read.value, read.label, index_name, read.updated_at, read.previous_value, read.next_update_at)


FEAR_GREED_LABEL = Meaning(
    "fear-greed.label",
    "The publisher's own word, never derived from the value, as its boundaries are not published; alternative.me sets "
    "one value a day, at 00:00 UTC",
    definition=Definition(publisher="alternative.me", link="https://alternative.me/crypto/fear-and-greed-index/"),
)
