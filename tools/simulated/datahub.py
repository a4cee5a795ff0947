"""Simulate DataHub's copies of EIA's daily prices: CSV, oldest first, without the days that have no price."""

import datetime as dt
from collections.abc import Sequence
from itertools import islice

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

HOST = "raw.githubusercontent.com"
ROWS = 900  # upstream since 1986 and 1997


def _csv(header: str, rows: Sequence[tuple[str, ...]]) -> Reply:
    return Reply.text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")


FORMS = {
    "empty": _csv("Date,Price", []),
    "status:404": Reply.text("404: Not Found", 404),
}


@serves("Datahub.wti_daily", HOST, "/datasets/oil-prices/main/data/wti-daily.csv", forms=FORMS)
def wti(world: World, ask: Ask) -> Reply:
    return _csv("Date,Price", _rows(world, "oil"))


@serves("Datahub.henry_hub_daily", HOST, "/datasets/natural-gas/main/data/daily.csv", forms=FORMS)
def henry_hub(world: World, ask: Ask) -> Reply:
    return _csv("Date,Price", _rows(world, "nat_gas"))


@wti.form("drift")
def wti_with_blanks(world: World, ask: Ask) -> Reply:
    return _with_blanks(world, "oil")


@henry_hub.form("drift")
def henry_hub_with_blanks(world: World, ask: Ask) -> Reply:
    return _with_blanks(world, "nat_gas")


def _with_blanks(world: World, name: str) -> Reply:
    """Return one more column, reversed columns, newest first, and a row without a price, as in older files."""
    rows = [("2021-01-01", ""), *_rows(world, name)]
    return _csv("Unit,Price,Date", [("USD", price, day) for day, price in reversed(rows)])


def copied(day: dt.date) -> float:
    """Return when a price is copied: a week's prices are published on the next Wednesday and copied a day later."""
    return macro.epoch(day + macro.DAY * (10 - day.weekday()), 6)


def days(world: World, count: int) -> list[dt.date]:
    """Return the newest days with a price, oldest first."""
    return list(islice(macro.days_out(world, macro.bank_day, copied), count))[::-1]


def _rows(world: World, name: str) -> list[tuple[str, str]]:
    return [(day.isoformat(), str(macro.level(world, name, day))) for day in days(world, ROWS)]
