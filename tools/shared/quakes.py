"""Get the earthquakes of the past day, for every tool that shows them: rarer kinds are cut from this one list.

A day always has earthquakes of magnitude 2.5 and above, so the list proves itself. A list of a
rarer kind, or of an hour, may be empty, and could not be told from a list that is no longer
maintained.
"""

from datetime import date, datetime, timedelta

from tools.parsing.earthquakes import Quake, QuakeList
from tools.sources.emsc import QUAKES_QUERY, EmscQuery
from tools.sources.usgs import QUAKES_DAY, QuakeQuery
from toolserver import Definition, Fallback, Meaning, SourceUnproved, via

FLOOR = 2.5
LEAST_A_DAY = 5  # the world is never quieter
DAY = timedelta(hours=25)  # and an hour for clocks and caches
NEWEST = timedelta(minutes=90)  # EMSC has no timestamp: its newest event shows that it is maintained
SIGNIFICANT = 600  # USGS's own measure: an event above it is significant
QUAKE_SOURCES = (QUAKES_DAY, QUAKES_QUERY)
THE_DAY = QuakeQuery("2.5", "day")


def quake_day_fallbacks(now: datetime) -> tuple[Fallback[QuakeList], ...]:
    """Return the fallbacks for magnitude 2.5 and above in the 24 hours before `now`: USGS, else EMSC."""
    minute = now.replace(second=0, microsecond=0)
    return (
        via(QUAKES_DAY, THE_DAY, lambda listed: whole_day(listed, now)),
        via(QUAKES_QUERY, EmscQuery(FLOOR, 24, minute), lambda listed: living_day(listed, now)),
    )


def whole_day(listed: QuakeList, now: datetime) -> QuakeList:
    """Return the list. Raises SourceUnproved when it has fewer earthquakes than any real day."""
    of_the_day = [quake for quake, _ in earthquakes_of(listed) if quake.time > now - DAY]
    if len(of_the_day) < LEAST_A_DAY:
        raise SourceUnproved(f"{len(of_the_day)} earthquakes in a day")
    return listed


def living_day(listed: QuakeList, now: datetime) -> QuakeList:
    """Check a list without a timestamp likewise. Raises SourceUnproved unless its newest event is minutes old."""
    newest = max((quake.time for quake in listed.quakes), default=None)
    if newest is None or newest < now - NEWEST:
        raise SourceUnproved("no earthquake of the past 90 minutes")
    return whole_day(listed, now)


def earthquakes_of(listed: QuakeList, floor: float = FLOOR) -> list[tuple[Quake, float]]:
    """Return the earthquakes of at least that magnitude, newest first, each with its magnitude.

    Quarry blasts and events whose magnitude is not published yet are left out.
    """
    measured = [(q, q.magnitude) for q in listed.quakes if q.kind == "earthquake" and q.magnitude is not None]
    return sorted(((q, m) for q, m in measured if m >= floor), key=lambda pair: pair[0].time, reverse=True)


def is_significant(quake: Quake) -> bool:
    """Return True if USGS counts the event among the significant ones."""
    return quake.significance is not None and is_above(quake.significance)


def is_above(significance: float) -> bool:
    """Return True if USGS calls an event of that significance significant."""
    return significance > SIGNIFICANT


EARTHQUAKES = (
    Meaning(
        "climate/earthquakes.filters.magnitude",
        "USGS: an event is significant above 600; the rule of its feed at exactly 600 was not found",
        decide=is_above,
        rows=((591, False), (600, False), (601, True), (611, True)),
        definition=Definition(
            publisher="USGS",
            link="https://earthquake.usgs.gov/earthquakes/browse/significant.php",
            words="> 600",
            read_on=date(2026, 11, 25),
        ),
    ),
    Meaning(
        "climate/earthquakes.tsunami",
        "USGS flags large events in oceanic regions: it does not say whether there is a tsunami, and is no warning "
        "(tsunami.gov has those)",
        definition=Definition(
            publisher="USGS",
            link="https://earthquake.usgs.gov/data/comcat/index.php",
            words="The existence or value of this flag does not indicate if a tsunami actually did or will exist",
            read_on=date(2026, 11, 28),
        ),
    ),
)
