"""Simulate FRED: observations as JSON for a key, charts as CSV for everyone; missing values are `.` or empty cells."""

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

Values = Iterator[tuple[dt.date, float | None]]  # newest first
FIRST_YEAR = 1990


def _every_day(day: dt.date) -> bool:
    return True


def _weekday(day: dt.date) -> bool:
    return day.weekday() < 5


def _funds(world: World) -> Values:
    """Yield the rate, which repeats the last business day on weekends and holidays, as this series does."""
    for day in macro.days_out(world, _every_day, lambda day: macro.epoch(macro.following(day, macro.bank_day), 15)):
        traded = (
            day
            if macro.bank_day(day)
            else next(macro.days_out(world.at(macro.epoch(day)), macro.bank_day, macro.epoch))
        )
        yield day, macro.funds_rate(world, traded)


def _yields(name: str) -> Callable[[World], Values]:
    """Return every weekday; holidays have a row without a value."""

    def values(world: World) -> Values:
        for day in macro.days_out(world, _weekday, macro.next_evening):
            yield day, macro.level(world, name, day) if macro.bank_day(day) else None

    return values


def _spot(name: str, weekday: int) -> Callable[[World], Values]:
    """Return the values of every weekday; those of a week are published together on a weekday of the next one."""

    def release(day: dt.date) -> float:
        return macro.epoch(day + macro.DAY * (7 + weekday - day.weekday()), 21)

    def values(world: World) -> Values:
        for day in macro.days_out(world, _weekday, release):
            yield day, macro.level(world, name, day) if macro.bank_day(day) else None

    return values


def _mortgage(world: World) -> Values:
    for day in macro.days_out(world, macro.thursday, lambda day: macro.epoch(day, 18)):
        yield day, macro.level(world, "mortgage_30y", day)


def _figures(
    figure: Callable[[World, dt.date], float | None], release: Callable[[int, int], float], step: int
) -> Callable[[World], Values]:
    def values(world: World) -> Values:
        for day in reversed(macro.periods_out(world, FIRST_YEAR, step, release)):
            yield day, figure(world, day)

    return values


SERIES: dict[str, Callable[[World], Values]] = {
    "DFF": _funds,
    "DGS2": _yields("treasury_2y"),
    "DGS10": _yields("treasury_10y"),
    "DCOILWTICO": _spot("oil", weekday=2),
    "DHHNGSP": _spot("nat_gas", weekday=2),
    "DTWEXBGS": _spot("dollar_index", weekday=0),
    "MORTGAGE30US": _mortgage,
    "CPIAUCSL": _figures(macro.cpi, macro.prices_release, 1),
    "CPIAUCNS": _figures(macro.cpi_unadjusted, macro.prices_release, 1),
    "UNRATE": _figures(macro.unemployment, macro.jobs_release, 1),
    "A191RL1Q225SBEA": _figures(macro.gdp_growth, macro.growth_release, 3),
}
"""Every series that is simulated. Another module adds its own by `SERIES[id] = values`."""


@serves("FRED.observations", "api.stlouisfed.org", "/fred/series/observations")
def observations(world: World, ask: Ask) -> Reply:
    params = ask.params
    if not ask.key_ok(params.get("api_key")):
        return bad_key(world, ask)
    if params.get("series_id") not in SERIES:
        return _error(400, "Bad Request.  The series does not exist.")
    rows = list(islice(SERIES[params["series_id"]](world), int(params.get("limit", "1000"))))
    return _observations(world, rows if params.get("sort_order") == "desc" else rows[::-1])


@observations.form("auth")
def bad_key(world: World, ask: Ask) -> Reply:
    """Return an error whose message quotes the key."""
    key = ask.params.get("api_key", "")
    return _error(400, f"Bad Request.  The value for variable api_key ({key}) is not registered.")


@observations.form("empty")
def only_missing(world: World, ask: Ask) -> Reply:
    return _observations(world, [(day, None) for day, _ in islice(SERIES["DGS10"](world), 12)])


@serves("FRED.graph_csv", "fred.stlouisfed.org", "/graph/fredgraph.csv")
def graph(world: World, ask: Ask) -> Reply:
    return _graph(world, ask, "observation_date", "")


@graph.form("drift")
def older_header(world: World, ask: Ask) -> Reply:
    """Return the download as it was before: another name for the date, a point for a missing value."""
    return _graph(world, ask, "DATE", ".")


@graph.form("empty")
def header_only(world: World, ask: Ask) -> Reply:
    return _csv([f"observation_date,{ask.params['id']}"])


def _graph(world: World, ask: Ask, date_column: str, missing: str) -> Reply:
    ids = ask.params["id"].split(",")
    since = dt.date.fromisoformat(ask.params["cosd"])
    if any(name not in SERIES for name in ids):
        return Reply.text("Not Found", 404)
    columns = [dict(takewhile(lambda pair: pair[0] >= since, SERIES[name](world))) for name in ids]
    days = sorted(set().union(*columns))
    rows = [[day.isoformat(), *(_cell(column.get(day), missing) for column in columns)] for day in days]
    return _csv([f"{date_column},{','.join(ids)}", *(",".join(row) for row in rows)])


def _cell(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value}"


def _observations(world: World, rows: list[tuple[dt.date, float | None]]) -> Reply:
    today = world.time.date().isoformat()
    observations = [
        {"realtime_start": today, "realtime_end": today, "date": str(day), "value": _cell(value, ".")}
        for day, value in rows
    ]
    return Reply.json(
        {
            "realtime_start": today,
            "realtime_end": today,
            "observation_start": "1600-01-01",
            "observation_end": "9999-12-31",
            "units": "lin",
            "output_type": 1,
            "file_type": "json",
            "order_by": "observation_date",
            "sort_order": "desc",
            "count": len(observations),
            "offset": 0,
            "limit": 1000,
            "observations": observations,
        }
    )


def _error(code: int, message: str) -> Reply:
    return Reply.json({"error_code": code, "error_message": message}, code)


def _csv(lines: list[str]) -> Reply:
    return Reply.text("\n".join(lines) + "\n", content_type="application/csv")
