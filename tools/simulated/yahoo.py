"""Simulate Yahoo's spark and chart: daily closes of five sessions, nulls among them, a misleading reference close."""

from typing import Any

from tools.simulated import stocks
from toolserver.world.model import Ask, Reply, World, serves

OURS = {"^GSPC": "SPX", "^DJI": "DJI", "^IXIC": "IXIC", "^RUT": "RUT", "^VIX": "VIX"}
SESSIONS = 6

CHART_FORMS = {
    "error200": Reply.json(
        {
            "chart": {
                "result": None,
                "error": {"code": "Not Found", "description": "No data found, symbol may be delisted"},
            }
        },
        404,
    ),
}


@serves(
    "Yahoo.spark",
    "query1.finance.yahoo.com",
    "/v8/finance/spark",
    forms={
        "empty": Reply.json({}),
        "auth": Reply.json(
            {"finance": {"result": None, "error": {"code": "Unauthorized", "description": "Invalid Crumb"}}}, 401
        ),
    },
)
def spark(world: World, ask: Ask) -> Reply:
    symbols = _known(ask)
    return Reply.json({symbol: _flat(world, symbol) for symbol in symbols}) if symbols else _no_spark()


@spark.form("drift")
def nested(world: World, ask: Ask) -> Reply:
    """Return the other form, in lists."""
    return Reply.json({"spark": {"result": [_nested(world, symbol) for symbol in _known(ask)], "error": None}})


@serves("Yahoo.chart", "query1.finance.yahoo.com", "/v8/finance/chart/{symbol}", forms=CHART_FORMS)
def chart(world: World, ask: Ask) -> Reply:
    symbol = ask.parts["symbol"].replace("%5E", "^").replace("%3D", "=")
    if not _exists(symbol):
        return CHART_FORMS["error200"]
    closes = _closes(world, symbol)
    at, last = closes[-1]
    assert last is not None
    result = {
        "meta": _meta(symbol, at, last),
        "timestamp": [int(moment) for moment, _ in closes],
        "indicators": {"quote": [{"close": [close for _, close in closes]}], "adjclose": [{"adjclose": []}]},
    }
    return Reply.json({"chart": {"result": [result], "error": None}})


@chart.form("empty")
def no_trading(world: World, ask: Ask) -> Reply:
    """Return a range without sessions: no times, an empty quote."""
    symbol = ask.parts["symbol"].replace("%5E", "^").replace("%3D", "=")
    at, last = _closes(world, symbol)[-1]
    assert last is not None
    return Reply.json(
        {"chart": {"result": [{"meta": _meta(symbol, at, last), "indicators": {"quote": [{}]}}], "error": None}}
    )


def _exists(symbol: str) -> bool:
    return symbol in stocks.FUTURES or OURS.get(symbol, symbol.replace("-", ".")) in stocks.NAMES


def _known(ask: Ask) -> list[str]:
    return [symbol for symbol in ask.params["symbols"].split(",") if _exists(symbol)]


def _closes(world: World, symbol: str) -> list[tuple[float, float | None]]:
    """Return times and closes of the newest sessions, oldest first; the last one is of the last trade."""
    seen = stocks.sessions(world, SESSIONS)
    moments = [*((s.opens, s.closes) for s in reversed(seen[1:])), (stocks.last_trade(world),) * 2]
    closes: list[tuple[float, float | None]] = [(at, _value(world, symbol, end)) for at, end in moments]
    if len(symbol) == 3:
        closes[1] = (closes[1][0], None)
    return closes


def _value(world: World, symbol: str, at: float) -> float:
    if symbol in stocks.FUTURES:
        return stocks.future(world, symbol, at)
    value = stocks.price(world, OURS.get(symbol, symbol.replace("-", ".")), at)
    return round(value, 2 if value >= 1 else 4)


def _flat(world: World, symbol: str) -> dict[str, Any]:
    closes = _closes(world, symbol)
    return {
        "timestamp": [int(at) for at, _ in closes],
        "symbol": symbol,
        "end": None,
        "start": None,
        "previousClose": None,
        "chartPreviousClose": closes[0][1],
        "close": [close for _, close in closes],
        "dataGranularity": 300,
    }


def _nested(world: World, symbol: str) -> dict[str, Any]:
    closes = _closes(world, symbol)
    at, last = closes[-1]
    assert last is not None
    response = {
        "meta": _meta(symbol, at, last) | {"chartPreviousClose": closes[0][1]},
        "timestamp": [int(moment) for moment, _ in closes],
        "indicators": {"quote": [{"close": [close for _, close in closes]}]},
    }
    return {"symbol": symbol, "response": [response]}


def _no_spark() -> Reply:
    error = {"code": "Not Found", "description": "No data found for spark symbols"}
    return Reply.json({"spark": {"result": None, "error": error}}, 404)


def _meta(symbol: str, at: float, last: float) -> dict[str, Any]:
    return {
        "currency": "USD",
        "symbol": symbol,
        "exchangeName": "NMS",
        "instrumentType": "FUTURE" if symbol in stocks.FUTURES else "INDEX" if symbol in OURS else "EQUITY",
        "regularMarketTime": int(at),
        "hasPrePostMarketData": symbol not in stocks.FUTURES,
        "gmtoffset": -18000,
        "timezone": "EST",
        "exchangeTimezoneName": "America/New_York",
        "regularMarketPrice": last,
        "priceHint": 2,
        "dataGranularity": "1d",
        "range": "5d",
    }
