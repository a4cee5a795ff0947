"""The earthquakes of the past day, for every tool that shows them."""

from datetime import datetime, timedelta

from tools.sources.emsc import QUAKES_QUERY, CatalogueQuery
from tools.sources.usgs import QUAKES_DAY, Quake, QuakeList, QuakeQuery
from toolserver.context import Leg, via
from toolserver.errors import SourceEmpty

FLOOR = 2.5
LEAST_A_DAY = 5  # the world is never quieter
DAY = timedelta(hours=25)  # and an hour for clocks and caches
QUAKE_SOURCES = (QUAKES_DAY, QUAKES_QUERY)


def quake_day_legs(now: datetime) -> tuple[Leg[QuakeList], ...]:
    """Magnitude 2.5 and above in the 24 hours before `now`: USGS, or EMSC when USGS is down."""

    def a_day(listed: QuakeList) -> QuakeList:
        """The list, if it has as many earthquakes as there are on any day: none is never the answer."""
        of_the_day = [quake for quake, _ in earthquakes_of(listed) if quake.time > now - DAY]
        if len(of_the_day) < LEAST_A_DAY:
            raise SourceEmpty(f"{len(of_the_day)} earthquakes in a day")
        return listed

    minute = now.replace(second=0, microsecond=0)
    return via(QUAKES_DAY, QuakeQuery("2.5", "day"), a_day), via(QUAKES_QUERY, CatalogueQuery(FLOOR, 24, minute), a_day)


def earthquakes_of(listed: QuakeList, floor: float = FLOOR) -> list[tuple[Quake, float]]:
    """The earthquakes of at least that magnitude, newest first, each with its magnitude.

    Quarry blasts and events whose magnitude is not published yet are left out.
    """
    found = [(q, q.magnitude) for q in listed.quakes if q.kind == "earthquake" and q.magnitude is not None]
    return sorted(((q, m) for q, m in found if m >= floor), key=lambda pair: pair[0].time, reverse=True)
