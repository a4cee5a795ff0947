"""Simulate Binance's public data host on the wire: strings with eight decimals, errors as objects with `code`."""

from typing import Any

from tools.simulated import market
from toolserver.world.model import Ask, Reply, World, serves

VENUE = "binance"
HOST = "data-api.binance.vision"
LENGTHS = {"1m": 60, "1h": 3600, "1d": 86400}
LEVERAGED = {"BTCUPUSDT": 3, "BTCDOWNUSDT": -3}
GEO = (
    "Service unavailable from a restricted location according to 'b. Eligibility' in https://www.binance.com/en/terms. "
    "Please contact customer service if you believe you received this message in error."
)


def symbols() -> dict[str, str]:
    """Return symbol -> asset, for everything quoted in USDT."""
    return {f"{coin.symbol}USDT": coin.symbol for coin in market.coins() if coin.symbol != "USDT"}


FORMS = {
    "empty": Reply.json([]),
    "error200": Reply.json({"code": 0, "msg": GEO}),
    "geo": Reply.json({"code": 0, "msg": GEO}, 451),
}


@serves("Binance.ticker_24h", HOST, "/api/v3/ticker/24hr", forms=FORMS)
def ticker(world: World, ask: Ask) -> Reply:
    symbol = ask.params.get("symbol")
    if symbol is None:
        return Reply.json(_all(world))
    asset = symbols().get(symbol)
    if asset is None:
        return Reply.json({"code": -1121, "msg": "Invalid symbol."}, 400)
    return Reply.json(_ticker(world, symbol, market.day(world, asset, VENUE)))


def _all(world: World) -> list[dict[str, Any]]:
    days = {symbol: market.day(world, asset, VENUE) for symbol, asset in symbols().items()}
    bitcoin, ether = days["BTCUSDT"], days["ETHUSDT"]
    days |= {symbol: _levered(bitcoin, factor) for symbol, factor in LEVERAGED.items()}
    days["ETHBTC"] = _in_bitcoin(ether, bitcoin)
    halted = _ticker(world, "BCCUSDT", market.Day(0, 0, 0, 0, 0)) | {"lastPrice": "448.70000000"}
    return [*(_ticker(world, symbol, day) for symbol, day in days.items()), halted]


def _in_bitcoin(day: market.Day, bitcoin: market.Day) -> market.Day:
    opened, last = day.open / bitcoin.open, day.last / bitcoin.last
    return market.Day(opened, max(opened, last), min(opened, last), last, day.volume)


def _levered(day: market.Day, factor: float) -> market.Day:
    last = 10 * (1 + factor * (day.last - day.open) / day.open)
    return market.Day(10, max(10, last), min(10, last), last, 50_000)


def _ticker(world: World, symbol: str, day: market.Day) -> dict[str, Any]:
    closed = int(world.now * 1000) - int(world.between("binance.lag", symbol, 5, 2000))
    mean = (day.open + day.high + day.low + day.last) / 4
    first = int(world.now) + len(symbol)
    count = int(day.volume * mean / 600) + 1 if day.last else 0
    return {
        "symbol": symbol,
        "priceChange": _text(day.last - day.open),
        "priceChangePercent": f"{(day.last - day.open) / day.open * 100 if day.open else 0:.3f}",
        "weightedAvgPrice": _text(mean),
        "prevClosePrice": _text(day.open),
        "lastPrice": _text(day.last),
        "lastQty": "0.19518800",
        "bidPrice": _text(day.last * 0.99999),
        "bidQty": "0.18401100",
        "askPrice": _text(day.last * 1.00001),
        "askQty": "0.19518800",
        "openPrice": _text(day.open),
        "highPrice": _text(day.high),
        "lowPrice": _text(day.low),
        "volume": _text(day.volume),
        "quoteVolume": _text(day.volume * mean),
        "openTime": closed - 86_400_000,
        "closeTime": closed,
        "firstId": first,
        "lastId": first + count - 1,
        "count": count,
    }


def _text(value: float) -> str:
    return f"{value:.8f}"


@ticker.form("drift")
def ticker_as_numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings and vice versa, with sorted keys and more members."""
    rows = _all(world) if "symbol" not in ask.params else [_ticker(world, "BTCUSDT", market.day(world, "BTC", VENUE))]
    changed = [{name: _swapped(name, row[name]) for name in sorted(row)} | {"permissions": ["SPOT"]} for row in rows]
    return Reply.json(changed[0] if "symbol" in ask.params else changed)


def _swapped(name: str, value: Any) -> Any:
    if name == "symbol":
        return value
    return float(value) if isinstance(value, str) else str(value)


@serves("Binance.klines", HOST, "/api/v3/klines", forms=FORMS)
def klines(world: World, ask: Ask) -> Reply:
    asset, length = symbols().get(ask.params.get("symbol", "")), LENGTHS.get(ask.params.get("interval", ""))
    if asset is None or length is None:
        return Reply.json({"code": -1121, "msg": "Invalid symbol."}, 400)
    count = min(int(ask.params.get("limit", "500")), 120)
    return Reply.json([_row(c, length) for c in market.candles(world, asset, length, count, VENUE)])


def _row(c: market.SimCandle, length: int) -> list[Any]:
    prices = [_text(v) for v in (c.open, c.high, c.low, c.close, c.volume)]
    quote, start = c.volume * c.close, int(c.start * 1000)
    taken = [_text(c.volume / 2), _text(quote / 2)]
    return [start, *prices, start + length * 1000 - 1, _text(quote), int(c.volume * 10), *taken, "0"]


@klines.form("drift")
def klines_as_numbers(world: World, ask: Ask) -> Reply:
    rows = [_row(c, 3600) for c in market.candles(world, "BTC", 3600, 32, VENUE)]
    return Reply.json([[float(value) for value in row] for row in rows])


@ticker.form("limited")
@klines.form("limited")
def banned(world: World, ask: Ask) -> Reply:
    until = int(world.now * 1000) + 120_000
    text = (
        f"Way too much request weight used; IP banned until {until}. "
        "Please use WebSocket Streams for live updates to avoid bans."
    )
    return Reply.json({"code": -1003, "msg": text}, 418)
