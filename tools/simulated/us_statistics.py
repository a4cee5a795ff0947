"""Simulate the public bodies that publish figures of the economy of the United States.

BLS's API takes a POST, writes values as strings, newest first, and refuses with status 200.
The New York Fed publishes a day's rate the next morning. DBnomics has one series, with periods and
values as parallel lists since 1947. Treasury's file of a year is CSV, newest first.
"""

import datetime as dt
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

Figure = Callable[[World, dt.date], float | None]
SERIES: dict[str, tuple[Figure, Callable[[int, int], float], str]] = {
    "CUSR0000SA0": (macro.cpi, macro.prices_release, ".3f"),
    "CUUR0000SA0": (macro.cpi_unadjusted, macro.prices_release, ".3f"),
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
BLS_FORMS = {
    "error200": USED_UP,
    "limited": USED_UP,
    "auth": _refused("The key:0123456789abcdef provided by the User is invalid."),
}


@serves("BLS.timeseries", "api.bls.gov", "/publicAPI/{version}/timeseries/data/", "POST", forms=BLS_FORMS)
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


@serves(
    "NYFed.effr",
    "markets.newyorkfed.org",
    "/api/rates/unsecured/effr/last/{count}.json",
    forms={"empty": Reply.json({"refRates": []})},
)
def effr(world: World, ask: Ask) -> Reply:
    days = islice(macro.days_out(world, macro.bank_day, macro.next_morning), int(ask.parts["count"]))
    return Reply.json({"refRates": [_rate(world, day) for day in days]})


@effr.form("drift")
def with_another_rate(world: World, ask: Ask) -> Reply:
    """Return oldest first, members in another order, and a second kind of rate among them."""
    days = list(islice(macro.days_out(world, macro.bank_day, macro.next_morning), 45))
    rows = [dict(reversed(_rate(world, day).items())) for day in reversed(days)]
    return Reply.json({"refRates": [*rows, {"effectiveDate": str(days[0]), "type": "OBFR", "percentRate": 9.99}]})


def _rate(world: World, day: dt.date) -> dict[str, Any]:
    rate, low = macro.funds_rate(world, day), macro.target(world, day)
    return {
        "effectiveDate": day.isoformat(),
        "type": "EFFR",
        "percentRate": rate,
        "percentPercentile1": round(rate - 0.03, 2),
        "percentPercentile25": rate,
        "percentPercentile75": round(rate + 0.01, 2),
        "percentPercentile99": round(rate + 0.12, 2),
        "targetRateFrom": low,
        "targetRateTo": low + 0.25,
        "volumeInBillions": int(world.between("effr.volume", day.toordinal(), 80, 120)),
        "revisionIndicator": "",
    }


QUARTERS_SINCE = 1990


def _series(documents: list[dict[str, Any]]) -> Reply:
    series = {"docs": documents, "limit": 1000, "num_found": len(documents), "offset": 0}
    return Reply.json({"_meta": {"version": "22.1.17"}, "series": series})


GROWTH_FORMS = {
    "empty": _series([]),
    "status:404": Reply.json({"errors": [{"message": "Series not found"}], "message": "Series not found"}, 404),
}


@serves(
    "DBnomics.us_real_gdp_growth", "api.db.nomics.world", "/v22/series/BEA/NIPA-T10101/A191RL-Q", forms=GROWTH_FORMS
)
def growth(world: World, ask: Ask) -> Reply:
    quarters = macro.periods_out(world, QUARTERS_SINCE, 3, macro.growth_release)
    document = {
        "@frequency": "quarterly",
        "dataset_code": "NIPA-T10101",
        "dataset_name": "Table 1.1.1. Percent Change From Preceding Period in Real Gross Domestic Product",
        "indexed_at": world.time.strftime("%Y-%m-%dT00:00:00.000Z"),
        "period": ["1946-Q4", *(f"{q.year}-Q{(q.month + 2) // 3}" for q in quarters)],
        "period_start_day": ["1946-10-01", *(q.isoformat() for q in quarters)],
        "provider_code": "BEA",
        "series_code": "A191RL-Q",
        "series_name": "Gross domestic product - Quarterly",
        "value": ["NA", *(macro.gdp_growth(world, q) for q in quarters)],
    }
    return _series([document])


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
TENOR_SINCE = {"1.5 Month": dt.date(2025, 2, 18)}


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
    if day < TENOR_SINCE.get(tenor, day) or tenor == "9 Mo":
        return ""
    return f"{macro.level(world, KEPT_AS.get(tenor, tenor), day):.2f}"
