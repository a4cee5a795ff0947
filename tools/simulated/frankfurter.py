"""Simulate Frankfurter: fixings with the dollar as base, five significant digits; business days only."""

import datetime as dt
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, expects, serves


def _answer(days: list[dt.date], rates: Mapping[str, Any], **more: str) -> Reply:
    span = {"start_date": str(days[0]), "end_date": str(days[-1])} if days else {}
    return Reply.json({"amount": 1.0, "base": "USD", **span, **more, "rates": rates})


FORMS = {
    "empty": _answer([], {}),
    "status:404": Reply.json({"message": "not found"}, 404),
}


@serves("Frankfurter.usd_timeseries", "api.frankfurter.dev", "/v1/{since}..{until}", forms=FORMS)
def timeseries(world: World, ask: Ask) -> Reply:
    since, until = (dt.date.fromisoformat(ask.parts[name]) for name in ("since", "until"))
    days = fixings(world, since, until)
    return _answer(days, {str(day): _rates(world, day, ask.params["symbols"].split(",")) for day in days})


@timeseries.form("drift")
def newest_first(world: World, ask: Ask) -> Reply:
    """Return the days in reverse order, without one currency, with one more member."""
    since, until = (dt.date.fromisoformat(ask.parts[name]) for name in ("since", "until"))
    days = fixings(world, since, until)
    symbols = [code for code in ask.params["symbols"].split(",") if code != "NOK"]
    rates = {str(day): _rates(world, day, symbols) for day in reversed(days)}
    return _answer(days, rates, provider="ECB")


def fixings(world: World, since: dt.date, until: dt.date) -> list[dt.date]:
    """Return published days from the business day at or before `since`, oldest first."""
    published = []
    for day in macro.days_out(world, macro.fixing_day, macro.afternoon):
        if day <= until:
            published.append(day)
        if day <= since:
            return published[::-1]
    raise AssertionError("days have no end")


def _rates(world: World, day: dt.date, symbols: list[str]) -> dict[str, float]:
    return {code: float(f"{macro.per_usd(world, code, day):.5g}") for code in sorted(symbols)}


@expects("forex")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/forex` must have at this instant when Frankfurter answers."""
    day, before = islice(macro.days_out(world, macro.fixing_day, macro.afternoon), 2)
    codes = list(macro.PER_USD)
    return {
        "base": "USD",
        "date": str(day),
        "rates": _rates(world, day, codes),
        "previous": {"date": str(before), "rates": _rates(world, before, codes)},
        "kind": "ecb_reference",
    }
