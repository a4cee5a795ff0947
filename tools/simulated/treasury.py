"""Simulate Treasury's yield curve file of a year: CSV, newest first, tenors quoted."""

import datetime as dt
from itertools import takewhile

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

TENORS = [
    "1 Mo",
    "1.5 Month",
    "2 Mo",
    "3 Mo",
    "4 Mo",
    "6 Mo",
    "1 Yr",
    "2 Yr",
    "3 Yr",
    "5 Yr",
    "7 Yr",
    "10 Yr",
    "20 Yr",
    "30 Yr",
]
KEPT_AS = {"2 Yr": "treasury_2y", "10 Yr": "treasury_10y", "1.5 Month": "1 Mo"}
SINCE = {"1.5 Month": dt.date(2025, 2, 18)}


def _header(tenors: list[str]) -> str:
    return ",".join(["Date", *(f'"{tenor}"' for tenor in tenors)])


def _csv(lines: list[str]) -> Reply:
    return Reply.text("\n".join(lines) + "\n", content_type="text/csv; charset=utf-8")


@serves(
    "Treasury.par_yield_curve",
    "home.treasury.gov",
    "/resource-center/data-chart-center/interest-rates/daily-treasury-rates.csv/{year}/all",
    forms={"empty": _csv([_header(TENORS)])},
)
def rates(world: World, ask: Ask) -> Reply:
    return _file(world, int(ask.parts["year"]), TENORS)


@rates.form("drift")
def another_tenor(world: World, ask: Ask) -> Reply:
    """Return a new tenor first, the others in reverse."""
    return _file(world, int(ask.parts["year"]), ["9 Mo", *reversed(TENORS)])


def _file(world: World, year: int, tenors: list[str]) -> Reply:
    end = world.at(min(world.now, macro.epoch(dt.date(year + 1, 1, 1)) - 1))
    days = takewhile(lambda d: d.year == year, macro.days_out(end, macro.bank_day, macro.same_evening))
    return _csv([_header(tenors), *(_row(world, day, tenors) for day in days)])


def _row(world: World, day: dt.date, tenors: list[str]) -> str:
    return ",".join([day.strftime("%m/%d/%Y"), *(_cell(world, day, tenor) for tenor in tenors)])


def _cell(world: World, day: dt.date, tenor: str) -> str:
    if day < SINCE.get(tenor, day) or tenor == "9 Mo":
        return ""
    return f"{macro.level(world, KEPT_AS.get(tenor, tenor), day):.2f}"
