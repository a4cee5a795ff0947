"""Simulate the Federal Reserve's release H.10: an HTML table of days, ND for a missing value, published weekly."""

import datetime as dt
from itertools import islice

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

ROWS = 700  # upstream since 2006
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>FRB: H.10 Release--Nominal Broad Dollar Index</title></head>
<body>
<ul class="nav"><li><a href="/default.htm">Home</a></li></ul>
<table class="layout"><tr><td>Foreign Exchange Rates - H.10 &nbsp;</td></tr></table>
<p>Release Date: {released}</p>
<table class="statistics" summary="Nominal Broad Dollar Index">
<thead><tr><th scope="col" id="a1">Date</th>
<th scope="col" id="a2">Nominal<br/>Broad Dollar Index</th></tr></thead>
{rows}
</table>
<p>ND: no data available</p>
</body>
</html>
"""


@serves("FederalReserve.broad_dollar_index", "www.federalreserve.gov", "/releases/h10/summary/jrxwtfb_nb.htm")
def broad_index(world: World, ask: Ask) -> Reply:
    row = '<tr>\n <th scope="row" headers="a1">{day}</th>\n <td headers="a2" class="shadedata">{value}</td>\n</tr>'
    listed = [row.format(day=_printed(day), value=_cell(world, day)) for day in days(world, ROWS)]
    return _page(world, listed)


@broad_index.form("drift")
def other_markup(world: World, ask: Ask) -> Reply:
    """Return newest first, plain cells without end tags, years with four digits, and a third kind of row."""
    rows = [f"<TR><TD>{day:%d}-{day:%b}-{day:%Y}<TD>&nbsp;{_cell(world, day)} " for day in reversed(days(world, ROWS))]
    return _page(world, [*rows[:9], "<tr><td colspan=2>Week</td></tr>", *rows[9:]])


@broad_index.form("empty")
def headings_only(world: World, ask: Ask) -> Reply:
    return _page(world, [])


def released(day: dt.date) -> float:
    """Return the release time of a week: the next Monday, or the business day after that, in the afternoon."""
    monday = day + macro.DAY * (7 - day.weekday())
    return macro.epoch(monday if macro.bank_day(monday) else macro.following(monday, macro.bank_day), 21.25)


def days(world: World, count: int) -> list[dt.date]:
    """Return the newest released weekdays, oldest first, including holidays."""
    return list(islice(macro.days_out(world, lambda day: day.weekday() < 5, released), count))[::-1]


def _cell(world: World, day: dt.date) -> str:
    return f"{macro.level(world, 'dollar_index', day):.4f}" if macro.bank_day(day) else "ND"


def _printed(day: dt.date) -> str:
    return f"{day.day}-{day:%b}-{day:%y}".upper()


def _page(world: World, rows: list[str]) -> Reply:
    monday = world.time.date() - macro.DAY * world.time.weekday()
    text = PAGE.format(released=f"{monday:%A, %B} {monday.day}, {monday.year}", rows="\n".join(rows))
    return Reply.text(text, content_type="text/html; charset=utf-8")
