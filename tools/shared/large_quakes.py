"""The earthquakes of the past day that are news: flagged as significant, or large."""

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from tools.shared.quakes import earthquakes_of
from tools.shared.together import all_of
from tools.sources.emsc import QUAKES_QUERY, CatalogueQuery
from tools.sources.usgs import QUAKES_DAY, Quake, QuakeList, QuakeQuery
from toolserver.context import Leg, Reading, via

LARGE = 6.0  # the magnitude from which an earthquake is news without a flag
ANY = -10.0
SOURCES = (QUAKES_DAY, QUAKES_QUERY)


class LargeQuakes(NamedTuple):
    """Earthquakes that are news, largest first. `flagged`: those that somebody flagged are among them."""

    quakes: tuple[tuple[Quake, float], ...]
    flagged: bool


def large_quake_legs(now: dt.datetime) -> tuple[Leg[LargeQuakes], ...]:
    """USGS's flagged ones together with all large ones of the past day; EMSC's large ones."""
    minute = now.replace(second=0, microsecond=0)

    async def usgs(reading: Reading) -> LargeQuakes:
        questions = (QUAKES_DAY, QuakeQuery("significant", "day")), (QUAKES_DAY, QuakeQuery("4.5", "day"))
        flagged, strong = await all_of(reading, *questions)
        return LargeQuakes(_largest([*earthquakes_of(flagged, ANY), *earthquakes_of(strong, LARGE)]), flagged=True)

    def from_emsc(listed: QuakeList) -> LargeQuakes:
        return LargeQuakes(_largest(earthquakes_of(listed, LARGE)), flagged=False)

    return usgs, via(QUAKES_QUERY, CatalogueQuery(LARGE, 24, minute), from_emsc)


def _largest(quakes: Iterable[tuple[Quake, float]]) -> tuple[tuple[Quake, float], ...]:
    """Each event once, the largest first, the newer of two alike first."""
    once = {quake.id: (quake, magnitude) for quake, magnitude in quakes}
    return tuple(sorted(once.values(), key=lambda pair: (pair[1], pair[0].time), reverse=True))
