"""Simulate Cboe: quotes by symbol, a quarter of an hour old, and the VIX's daily history as CSV."""

import datetime as dt
from itertools import takewhile

from tools.simulated import macro, stocks
from toolserver.world.model import Ask, Reply, World, serves

OURS = {"_SPX": ("SPX", 1), "_DJX": ("DJI", 100), "_RUT": ("RUT", 1), "_VIX": ("VIX", 1)}
DELAY_S = 900
SINCE = dt.date(2024, 1, 2)
DENIED = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"""


def _csv(header: str, rows: list[str]) -> Reply:
    return Reply.text("\n".join([header, *rows]) + "\n", content_type="text/csv")


QUOTE_FORMS = {
    # as for an unknown symbol
    "auth": Reply.text(DENIED, 403, content_type="application/xml"),
}


@serves("Cboe.delayed_quote", "cdn.cboe.com", "/api/global/delayed_quotes/quotes/{symbol}.json", forms=QUOTE_FORMS)
def quote(world: World, ask: Ask) -> Reply:
    symbol, share = OURS.get(ask.parts["symbol"], (ask.parts["symbol"], 1))
    if symbol not in stocks.NAMES:
        return QUOTE_FORMS["auth"]
    seen = stocks.trade(world.at(world.now - DELAY_S), symbol)
    change = (seen.last - seen.previous_close) / share
    closed = not stocks.is_open(world.at(world.now - DELAY_S))
    local = dt.datetime.fromtimestamp(seen.at, dt.UTC)
    local += dt.timedelta(hours=stocks.new_york_hours(local.date()))
    data = {
        "symbol": ask.parts["symbol"].replace("_", "^"),
        "security_type": "index" if ask.parts["symbol"] in OURS else "stock",
        "current_price": round(seen.last / share, 4),
        "price_change": round(change, 4),
        "price_change_percent": round(change * share / seen.previous_close * 100, 4),
        "open": round(seen.open / share, 4),
        "prev_day_close": round((seen.last if closed else seen.previous_close) / share, 4),
        "last_trade_time": local.strftime("%Y-%m-%dT%H:%M:%S"),
    }
    return Reply.json(
        {"timestamp": world.time.strftime("%Y-%m-%d %H:%M:%S"), "data": data, "symbol": ask.parts["symbol"]}
    )


@serves(
    "Cboe.vix_history",
    "cdn.cboe.com",
    "/api/global/us_indices/daily_prices/VIX_History.csv",
    forms={"empty": _csv("DATE,OPEN,HIGH,LOW,CLOSE", [])},
)
def vix_history(world: World, ask: Ask) -> Reply:
    return _csv("DATE,OPEN,HIGH,LOW,CLOSE", [_row(world, day, "%m/%d/%Y") for day in _days(world)])


@vix_history.form("drift")
def iso_dates(world: World, ask: Ask) -> Reply:
    """Return dates in the form of repackaged copies."""
    return _csv("DATE,OPEN,HIGH,LOW,CLOSE", [_row(world, day, "%Y-%m-%d") for day in _days(world)])


def _days(world: World) -> list[dt.date]:
    """Return sessions that ended at least two hours ago, oldest first."""
    out = macro.days_out(world, macro.market_day, lambda day: stocks.session(day).closes + 7200)
    return list(takewhile(lambda day: day >= SINCE, out))[::-1]


def _row(world: World, day: dt.date, form: str) -> str:
    opens, closes = stocks.session(day)
    seen = [stocks.price(world, "VIX", opens + (closes - opens) * i / 6) for i in range(7)]
    values = (seen[0], max(seen), min(seen), seen[-1])
    return ",".join([day.strftime(form), *(f"{round(value, 2):.6f}" for value in values)])
