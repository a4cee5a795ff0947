"""Simulate BLS's public API: POST, values as strings, newest first, refusals with status 200."""

import datetime as dt
from collections.abc import Callable
from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

Figure = Callable[[World, dt.date], float | None]
SERIES: dict[str, tuple[Figure, Callable[[int, int], float], str]] = {
    "CUSR0000SA0": (macro.cpi, macro.prices_release, ".3f"),
    "LNS14000000": (macro.unemployment, macro.jobs_release, ".1f"),
}
LAPSE = "Data unavailable due to the 2025 lapse in appropriations"


def _refused(message: str) -> Reply:
    return _answer("REQUEST_NOT_PROCESSED", [message], {})


def _answer(status: str, message: list[str], results: dict[str, Any]) -> Reply:
    return Reply.json({"status": status, "responseTime": 151, "message": message, "Results": results})


USED_UP = _refused(
    "Request could not be serviced, as the daily threshold for total number of requests "
    "allocated to the user has been reached."
)
FORMS = {
    "error200": USED_UP,
    "limited": USED_UP,
    "auth": _refused("The key:0123456789abcdef provided by the User is invalid."),
}


@serves("BLS.timeseries", "api.bls.gov", "/publicAPI/{version}/timeseries/data/", "POST", forms=FORMS)
def timeseries(world: World, ask: Ask) -> Reply:
    request = ask.json
    if ask.parts["version"] == "v2" and not ask.key_ok(request.get("registrationkey")):
        return _refused(f"The key:{request.get('registrationkey')} provided by the User is invalid.")
    years = range(int(request["startyear"]), int(request["endyear"]) + 1)
    series = [{"seriesID": name, "data": _data(world, name, years)} for name in request["seriesid"]]
    return _answer("REQUEST_SUCCEEDED", [], {"series": series})


@timeseries.form("empty")
def no_months(world: World, ask: Ask) -> Reply:
    series: list[dict[str, Any]] = [{"seriesID": name, "data": []} for name in ask.json["seriesid"]]
    return _answer("REQUEST_SUCCEEDED", ["No Data Available for Series"], {"series": series})


@timeseries.form("drift")
def with_averages(world: World, ask: Ask) -> Reply:
    """Return the series in another order, with annual averages among the months and without `latest`."""
    years = range(int(ask.json["startyear"]), int(ask.json["endyear"]) + 1)
    average = {"year": str(years[0]), "period": "M13", "periodName": "Annual", "value": "1.0", "footnotes": [{}]}
    series = [{"seriesID": n, "data": [average, *_data(world, n, years)]} for n in reversed(ask.json["seriesid"])]
    for row in series:
        for month in row["data"]:
            month.pop("latest", None)
    return _answer("REQUEST_SUCCEEDED", [], {"series": series})


def _data(world: World, name: str, years: range) -> list[dict[str, Any]]:
    figure, release, digits = SERIES[name]
    months = [month for month in macro.periods_out(world, years[0], 1, release) if month.year in years]
    rows = [_month(month, figure(world, month), digits) for month in reversed(months)]
    if rows:
        rows[0]["latest"] = "true"
    return rows


def _month(month: dt.date, value: float | None, digits: str) -> dict[str, Any]:
    return {
        "year": str(month.year),
        "period": f"M{month.month:02}",
        "periodName": month.strftime("%B"),
        "value": "-" if value is None else format(value, digits),
        "footnotes": [{"code": "X", "text": LAPSE}] if value is None else [{}],
    }
