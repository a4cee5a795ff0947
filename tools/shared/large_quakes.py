"""Find the newsworthy earthquakes of the past day: those flagged as significant, and large ones."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from tools.parsing.earthquakes import Quake, QuakeList
from tools.shared.quakes import QUAKE_SOURCES, earthquakes_of, is_significant, quake_day_fallbacks
from toolserver import Fallback, Meaning, convert_fallback

LARGE = 6.0  # from this magnitude an earthquake is news without a flag
ANY = -10.0
SOURCES = QUAKE_SOURCES


class LargeQuakes(NamedTuple):
    """Newsworthy earthquakes, largest first. `flagged` says whether the list includes those flagged as significant."""

    quakes: tuple[tuple[Quake, float], ...]
    flagged: bool


def large_quake_fallbacks(now: dt.datetime) -> tuple[Fallback[LargeQuakes], ...]:
    """Return the fallbacks, cut from the day's list, which is never empty: USGS's significant
    and large ones, EMSC's large ones.
    """
    usgs, emsc = quake_day_fallbacks(now)
    return convert_fallback(usgs, of_usgs), convert_fallback(emsc, of_emsc)


def of_usgs(listed: QuakeList) -> LargeQuakes:
    news = (pair for pair in earthquakes_of(listed, ANY) if pair[1] >= LARGE or is_significant(pair[0]))
    return LargeQuakes(_largest(news), flagged=True)


def of_emsc(listed: QuakeList) -> LargeQuakes:
    return LargeQuakes(_largest(earthquakes_of(listed, LARGE)), flagged=False)


def _largest(quakes: Iterable[tuple[Quake, float]]) -> tuple[tuple[Quake, float], ...]:
    """Return each event once, the largest first, and the newer one first among equals."""
    once = {quake.id: (quake, magnitude) for quake, magnitude in quakes}
    return tuple(sorted(once.values(), key=lambda pair: (pair[1], pair[0].time), reverse=True))


LARGE_QUAKES = Meaning(
    "pro/agent-context.context.world_events.significant_earthquakes_24h",
    "What USGS counts as significant, and in any case magnitude 6 and above, which alone counts of EMSC",
)
