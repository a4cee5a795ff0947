"""Simulate shares, funds, indices and futures: prices move only in New York's trading hours.

Pin `price.<symbol>` to fix a price.

CNBC serves them as rows of printed strings, a single row without a list, unknown symbols as rows with a code.
"""

import datetime as dt
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from tools.simulated import macro, stocks
from tools.simulated.market import DAY, HOUR, MINUTE
from toolserver.world.model import Ask, Reply, World, expects, serves

OPEN_H, CLOSE_H = 9.5, 16.0

SHARES = {
    "SPY": ("SPDR S&P 500 ETF Trust", 690.0), "QQQ": ("Invesco QQQ Trust", 612.0), "DIA": ("SPDR Dow Jones ETF", 472.0),
    "IWM": ("iShares Russell 2000 ETF", 243.0), "NVDA": ("NVIDIA Corp", 188.0), "AAPL": ("Apple Inc", 268.0),
    "MSFT": ("Microsoft Corp", 505.0), "GOOGL": ("Alphabet Inc", 285.0), "AMZN": ("Amazon.com Inc", 228.0),
    "META": ("Meta Platforms Inc", 610.0), "TSLA": ("Tesla Inc", 410.0), "AMD": ("Advanced Micro Devices Inc", 230.0),
    "COIN": ("Coinbase Global Inc", 290.0), "CRCL": ("Circle Internet Group Inc", 82.0),
    "PLTR": ("Palantir Technologies Inc", 172.0), "MSTR": ("Strategy Inc", 195.0),
    "SMCI": ("Super Micro Computer Inc", 36.0), "AVGO": ("Broadcom Inc", 345.0), "CRM": ("Salesforce Inc", 235.0),
    "NFLX": ("Netflix Inc", 110.0), "XYZ": ("Block Inc", 62.0), "SHOP": ("Shopify Inc", 148.0),
    "HOOD": ("Robinhood Markets Inc", 115.0), "SOFI": ("SoFi Technologies Inc", 27.0),
    "MARA": ("MARA Holdings Inc", 12.0), "RIOT": ("Riot Platforms Inc", 14.0), "UBER": ("Uber Technologies Inc", 91.0),
    "ARM": ("Arm Holdings PLC", 140.0),
    "SNOW": ("Snowflake Inc", 260.0), "RBLX": ("Roblox Corp", 98.0), "RIVN": ("Rivian Automotive Inc", 15.0),
    "IBM": ("International Business Machines Corp", 305.0), "KO": ("Coca-Cola Co", 71.0), "F": ("Ford Motor Co", 13.0),
    "BRK.B": ("Berkshire Hathaway Inc", 505.0), "SNDL": ("SNDL Inc", 0.62),
}  # fmt: skip
INDICES = {
    "SPX": ("S&P 500 Index", 6900.0), "DJI": ("Dow Jones Industrial Average", 47200.0),
    "IXIC": ("NASDAQ Composite", 23000.0), "RUT": ("Russell 2000 Index", 2430.0),
    "VIX": ("CBOE Volatility Index", 22.0),
}  # fmt: skip
FUTURES = {"CL=F": ("Crude Oil", "oil"), "NG=F": ("Natural Gas", "nat_gas"), "GC=F": ("Gold", "gold")}
NAMES = {symbol: name for table in (SHARES, INDICES) for symbol, (name, _) in table.items()}
BASES = {symbol: base for table in (SHARES, INDICES) for symbol, (_, base) in table.items()}
TRACKS = {"SPY": ("SPX", 10), "DIA": ("DJI", 100), "IWM": ("RUT", 10)}  # a fund is its index, divided
CALM = {*INDICES, "SPY", "QQQ", "DIA", "IWM"}  # they swing less than single shares


class Session(NamedTuple):
    """A trading day in epoch seconds."""

    opens: float
    closes: float


def new_york_hours(date: dt.date) -> int:
    """Return New York's offset from UTC in hours."""
    summer = macro.nth_weekday(date.year, 3, 6, 2) <= date < macro.nth_weekday(date.year, 11, 6, 1)
    return -4 if summer else -5


def session(date: dt.date) -> Session:
    hours = new_york_hours(date)
    return Session(macro.epoch(date, OPEN_H - hours), macro.epoch(date, CLOSE_H - hours))


def sessions(world: World, count: int) -> list[Session]:
    """Return the newest sessions that have begun, newest first."""
    begun = macro.days_out(world, macro.market_day, lambda day: session(day).opens)
    return [session(day) for day in islice(begun, count)]


def is_open(world: World) -> bool:
    return world.now < sessions(world, 1)[0].closes


def last_trade(world: World) -> float:
    """Return the instant of the current price: now, or the last close."""
    return min(world.now, sessions(world, 1)[0].closes)


def price(world: World, symbol: str, at: float) -> float:
    """Return the price at an instant of a session."""
    pinned = world.pinned(f"price.{symbol}", at)
    if pinned is not None:
        return pinned
    if symbol in TRACKS:
        index, share = TRACKS[symbol]
        return price(world, index, at) / share
    waves = [world.noise(f"{symbol}.{n}", at / span) for n, span in ((1, MINUTE), (2, HOUR), (3, DAY))]
    if symbol == "VIX":
        return 22 + 0.4 * waves[0] + 2 * waves[1] + 7 * waves[2]
    swing = 0.3 if symbol in CALM else 1.0
    return BASES[symbol] * math.exp(swing * (0.001 * waves[0] + 0.006 * waves[1] + 0.05 * waves[2]))


class Trade(NamedTuple):
    """A symbol's quote, in cents for prices of a dollar or more."""

    last: float
    previous_close: float
    open: float
    at: float


def trade(world: World, symbol: str) -> Trade:
    today, before = sessions(world, 2)
    at = min(world.now, today.closes)
    last, previous, first = (_cents(price(world, symbol, moment)) for moment in (at, before.closes, today.opens))
    return Trade(last, previous, first, at)


def _cents(value: float) -> float:
    return round(value, 2 if value >= 1 else 4)


def future(world: World, symbol: str, at: float) -> float:
    """Return a futures price: the spot price of the day, with a small hourly movement."""
    day = dt.datetime.fromtimestamp(at, dt.UTC).date()
    base = 4100.0 if symbol == "GC=F" else macro.LEVELS[FUTURES[symbol][1]]
    spot = macro.walk(world, f"macro.{FUTURES[symbol][1]}", day, base)
    return round(spot * (1 + 0.004 * world.noise(symbol, at / HOUR)), 3 if base < 10 else 2)


@expects("stocks")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return prices and closes by symbol that `/api/stocks` must have at this instant when CNBC answers."""
    names = params["symbols"].split(",") if "symbols" in params else list(SHARES)[:31]
    trades = {name: trade(world, name) for name in names if name in NAMES}
    return {
        "quotes": [
            {"symbol": name, "price": _shown(seen.last), "previous_close": _shown(seen.previous_close)}
            for name, seen in sorted(trades.items())
        ]
    }


def _shown(value: float) -> float:
    return round(value, 2) if value >= 1 else float(f"{value:.6g}")


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
