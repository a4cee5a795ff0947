"""Simulate CNBC's quotes: rows of printed strings, a single row without a list, unknown symbols as rows with a code."""

import datetime as dt
from typing import Any

from tools.simulated import stocks
from toolserver.world.model import Ask, Reply, World, serves

SLOPPY = "RIVN"  # its own change contradicts its prices


@serves("CNBC.quotes", "quote.cnbc.com", "/quote-html-webservice/restQuote/symbolType/symbol")
def quotes(world: World, ask: Ask) -> Reply:
    return _answer([_row(world, symbol) for symbol in ask.params["symbols"].split("|")])


@quotes.form("empty")
def nothing_known(world: World, ask: Ask) -> Reply:
    return _answer([_unknown(symbol) for symbol in ask.params["symbols"].split("|")])


@quotes.form("drift")
def without_dots(world: World, ask: Ask) -> Reply:
    """Return indices without their dot, rows and members in another order, and one optional member less."""
    rows = [_row(world, symbol) for symbol in reversed(ask.params["symbols"].split("|"))]
    return _answer(
        [{k: v.lstrip(".") if k == "symbol" else v for k, v in row.items() if k != "curmktstatus"} for row in rows]
    )


def _answer(rows: list[dict[str, Any]]) -> Reply:
    quotes = rows[0] if len(rows) == 1 else rows
    return Reply.json({"FormattedQuoteResult": {"xmlns": "http://quote.cnbc.com", "FormattedQuote": quotes}})


def _unknown(symbol: str) -> dict[str, Any]:
    return {"symbol": symbol, "symbolType": "symbol", "code": 1}


def _row(world: World, symbol: str) -> dict[str, Any]:
    name = symbol.lstrip(".")
    if name not in stocks.NAMES:
        return _unknown(symbol)
    seen = stocks.trade(world, name)
    change = round(seen.last - seen.previous_close, 4)
    local = dt.datetime.fromtimestamp(seen.at, dt.UTC).date()
    zone = dt.timezone(dt.timedelta(hours=stocks.new_york_hours(local)))
    at = dt.datetime.fromtimestamp(seen.at, zone)
    return {
        "symbol": symbol,
        "symbolType": "symbol",
        "code": 0,
        "name": stocks.NAMES[name],
        "shortName": name,
        "last": _printed(seen.last),
        "last_timedate": at.strftime("%-I:%M %p ")
        + ("EDT" if zone.utcoffset(None) == dt.timedelta(hours=-4) else "EST"),
        "last_time": at.strftime("%Y-%m-%dT%H:%M:%S.000%z"),
        "changetype": "UP" if change > 0 else "DOWN" if change < 0 else "UNCH",
        "open": _printed(seen.open),
        "high": "--",
        "low": "--",
        "change": f"{change:+.2f}" if change else "UNCH",
        "change_pct": "0.00%" if name == SLOPPY else f"{change / seen.previous_close * 100:+.2f}%",
        "previous_day_closing": _printed(seen.previous_close),
        "currencyCode": "USD",
        "realTime": "true",
        "curmktstatus": "REG_MKT" if stocks.is_open(world) else "POST_MKT",
    }


def _printed(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"
