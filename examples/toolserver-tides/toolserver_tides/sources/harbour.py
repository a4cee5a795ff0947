"""Read the tide gauge of one harbour (JSON, no key). The harbour is invented."""

from datetime import datetime
from typing import Any, NamedTuple

from toolserver import Get, HostGroup, Licence, Source, SourceEmpty


class Reading(NamedTuple):
    """The level of the water in metres above chart datum."""

    at: datetime
    level_m: float


def parse(body: Any, query: None) -> tuple[Reading, ...]:
    """Return the readings of the past day, oldest first. Raises SourceEmpty when there are none."""
    readings = tuple(Reading(datetime.fromisoformat(row["time"]), float(row["level"])) for row in body["readings"])
    if not readings:
        raise SourceEmpty("no reading")
    return readings


LEVELS = Source(
    "Harbour.water_levels",
    Get("https://tides.example/levels"),
    parse,
    licence=Licence("yes", "The harbour master"),
    hosts=HostGroup("tides.example", parallel=1, gap_s=1, budget=60, period_s=3600),
    fresh_s=60,
    newest=lambda readings: readings[-1].at,
    newest_max_s=7200,
)
