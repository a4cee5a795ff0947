"""Simulate OKX spot tickers on the wire: strings everywhere, errors with status 200 and a `code`."""

from typing import Any

from tools.simulated import market
from toolserver.world.model import Ask, Reply, World, serves

VENUE = "okx"


def _answer(data: list[dict[str, Any]], code: str = "0", text: str = "") -> Reply:
    return Reply.json({"code": code, "msg": text, "data": data})


FORMS = {
    "empty": _answer([]),
    "error200": _answer([], "50013", "Systems are busy. Please try again later."),
    "limited": Reply.json({"msg": "Too Many Requests", "code": "50011", "data": []}, 429),
    "geo": Reply.text("<html><head><title>403 Forbidden</title></head></html>", 403, "text/html"),
}


@serves("OKX.spot_tickers", "www.okx.com", "/api/v5/market/tickers", forms=FORMS)
def tickers(world: World, ask: Ask) -> Reply:
    kind = ask.params.get("instType")
    if kind is None:
        return _answer([], "50014", "Parameter instType can not be empty.")
    if kind != "SPOT":
        return _answer([], "51000", "Parameter instType error")
    return _answer(_rows(world))


def _rows(world: World) -> list[dict[str, Any]]:
    """Return every coin in USDT, the larger ones also in USD, and one pair that was just listed."""
    coins = [coin.symbol for coin in market.coins()]
    days = {symbol: market.day(world, symbol, VENUE) for symbol in coins}
    pairs = [(s, "USDT") for s in coins if s != "USDT"] + [(s, "USD") for s in coins[:20]]
    rows = [_row(world, f"{symbol}-{quote}", days[symbol]) for symbol, quote in pairs]
    fresh = dict.fromkeys(("last", "lastSz", "open24h", "high24h", "low24h", "sodUtc0", "sodUtc8"), "")
    return [*rows, _row(world, "NEWLY-USDT", market.Day(1, 1, 1, 1, 0)) | fresh]


def _row(world: World, pair: str, day: market.Day) -> dict[str, Any]:
    mean = (day.open + day.high + day.low + day.last) / 4
    return {
        "instType": "SPOT",
        "instId": pair,
        "last": _text(day.last),
        "lastSz": "0.00104",
        "askPx": _text(day.last * 1.00001),
        "askSz": "0.35",
        "bidPx": _text(day.last * 0.99999),
        "bidSz": "0.61",
        "open24h": _text(day.open),
        "high24h": _text(day.high),
        "low24h": _text(day.low),
        "volCcy24h": f"{day.volume * mean:.6f}",
        "vol24h": f"{day.volume:.6f}",
        "ts": str(int(world.now * 1000) - int(world.between("okx.lag", pair, 5, 3000))),
        "sodUtc0": _text(day.open),
        "sodUtc8": _text(day.open),
    }


def _text(price: float) -> str:
    return f"{price:.1f}" if price >= 1000 else f"{price:.4f}" if price >= 1 else f"{price:.12f}".rstrip("0")


@tickers.form("drift")
def tickers_as_numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, for the code as well, in another order, with more members."""
    texts = {"instType", "instId"}
    rows = [
        {name: row[name] if name in texts or row[name] == "" else float(row[name]) for name in reversed(row)}
        for row in _rows(world)
    ]
    return Reply.json({"data": [row | {"ruleType": "normal"} for row in rows], "msg": "", "code": 0})
