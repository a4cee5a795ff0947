"""Simulate Freddie Mac's survey: CSV, weekly rows since 1971 (shortened here), oldest first, blanks in late columns."""

import datetime as dt
from itertools import takewhile

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

COLUMNS = ["date", "pmms30", "pmms30p", "pmms15", "pmms15p", "pmms51", "pmms51p", "pmms51m", "pmms51spread"]
SINCE = dt.date(2023, 1, 1)


def _csv(columns: list[str], rows: list[dict[str, str]]) -> Reply:
    lines = [",".join(columns), *(",".join(row[name] for name in columns) for row in rows)]
    return Reply.text("\r\n".join(lines) + "\r\n", content_type="text/csv")


@serves("FreddieMac.pmms_30y", "www.freddiemac.com", "/pmms/docs/PMMS_history.csv", forms={"empty": _csv(COLUMNS, [])})
def history(world: World, ask: Ask) -> Reply:
    return _csv(COLUMNS, [_row(world, day) for day in thursdays(world)])


@history.form("drift")
def other_columns(world: World, ask: Ask) -> Reply:
    """Return reversed columns and one more."""
    columns = ["week", *reversed(COLUMNS)]
    return _csv(columns, [_row(world, day) | {"week": str(n)} for n, day in enumerate(thursdays(world))])


def thursdays(world: World) -> list[dt.date]:
    """Return the survey's days, oldest first; a rate is published at noon of its day."""
    out = macro.days_out(world, macro.thursday, lambda day: macro.epoch(day, 17))
    return list(takewhile(lambda day: day >= SINCE, out))[::-1]


def _row(world: World, day: dt.date) -> dict[str, str]:
    thirty = macro.level(world, "mortgage_30y", day)
    return dict.fromkeys(COLUMNS, " ") | {
        "date": f"{day.month}/{day.day}/{day.year}",
        "pmms30": f"{thirty:.2f}",
        "pmms15": f"{thirty - 0.8:.2f}",
    }
