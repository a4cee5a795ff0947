"""Kraken as it answers on the wire: arrays of strings under pair names of its own, errors with status 200."""

from typing import Any

from tools.simulated import market
from toolserver.world.model import Ask, Reply, World, serves

VENUE = "kraken"
OWN = {"BTC": "XBT", "DOGE": "XDG"}
OLD = {"BTC": "XXBTZUSD", "ETH": "XETHZUSD", "XRP": "XXRPZUSD", "LTC": "XLTCZUSD", "USDT": "USDTZUSD"}
ROWS = 120  # upstream up to 720


def pair_name(asset: str, quote: str) -> str:
    """The key under which a pair is answered."""
    return OLD[asset] if quote == "USD" and asset in OLD else OWN.get(asset, asset) + quote


PAIRS = {(c.symbol, quote) for c in market.coins() for quote in ("USD", "USDT") if c.symbol != "USDT" or quote == "USD"}
ASKED = {OWN.get(asset, asset) + quote: (asset, quote) for asset, quote in PAIRS}
ASKED |= {pair_name(*pair): pair for pair in PAIRS}


def error(text: str) -> Reply:
    return Reply.json({"error": [text]})


def _one_pair(ask: Ask) -> bool:
    return "pair" in ask.params


@serves("Kraken.ticker_all", "api.kraken.com", "/0/public/Ticker", when=lambda ask: not _one_pair(ask))
def ticker_all(world: World, ask: Ask) -> Reply:
    return Reply.json({"error": [], "result": _all(world)})


@serves("Kraken.ticker", "api.kraken.com", "/0/public/Ticker", when=_one_pair)
def ticker(world: World, ask: Ask) -> Reply:
    asked = ask.params["pair"]
    if asked not in ASKED:
        return error("EQuery:Unknown asset pair")
    asset, quote = ASKED[asked]
    return Reply.json({"error": [], "result": {pair_name(asset, quote): _ticker(world, asset)}})


def _all(world: World) -> dict[str, Any]:
    rows = {c.symbol: _ticker(world, c.symbol) for c in market.coins()}
    listed = {pair_name(asset, quote): rows[asset] for asset, quote in sorted(PAIRS)}
    nobody = {"v": ["0.00000000"] * 2, "p": ["0.00000"] * 2, "t": [0, 0], "l": ["0.00000"] * 2, "h": ["0.00000"] * 2}
    dead = {"a": ["0.00000", "0", "0.000"], "b": ["0.00000", "0", "0.000"], "c": ["0.00000", "0.00000000"], **nobody}
    return listed | {"XXBTZEUR": rows["BTC"], "GONEUSD": dead | {"o": "0.00000"}}


def _ticker(world: World, asset: str) -> dict[str, Any]:
    day = market.day(world, asset, VENUE)
    today = world.now - world.now % market.DAY
    opened = market.price(world, asset, today, VENUE)
    share = (world.now - today) / market.DAY
    mean = (day.open + day.high + day.low + day.last) / 4
    trades = int(day.volume * day.last / 700) + 1
    return {
        "a": [_text(day.last * 1.00001), "1", "1.000"],
        "b": [_text(day.last * 0.99999), "1", "1.000"],
        "c": [_text(day.last), "0.00603612"],
        "v": [f"{day.volume * share:.8f}", f"{day.volume:.8f}"],
        "p": [_text((opened + day.last) / 2), _text(mean)],
        "t": [int(trades * share), trades],
        "l": [_text(min(opened, day.last)), _text(day.low)],
        "h": [_text(max(opened, day.last)), _text(day.high)],
        "o": _text(opened),
    }


def _text(price: float) -> str:
    return f"{price:.5f}" if price >= 1 else f"{price:.12f}"


@ticker.form("drift")
@ticker_all.form("drift")
def ticker_as_numbers(world: World, ask: Ask) -> Reply:
    """Numbers where there were strings, another order, a member more, no opening price."""
    asked = ask.params.get("pair")
    rows = _all(world) if asked is None else {pair_name(*ASKED[asked]): _ticker(world, ASKED[asked][0])}
    changed = {
        name: {"n": [1.0]} | {k: [*map(float, v)] for k, v in row.items() if k != "o"} for name, row in rows.items()
    }
    return Reply.json({"result": changed, "error": []})


@serves("Kraken.ohlc", "api.kraken.com", "/0/public/OHLC")
def ohlc(world: World, ask: Ask) -> Reply:
    asked, minutes = ask.params.get("pair", ""), int(ask.params.get("interval", "1"))
    if asked not in ASKED:
        return error("EQuery:Unknown asset pair")
    asset, quote = ASKED[asked]
    found = market.candles(world, asset, minutes * 60, ROWS, VENUE)
    rows = [
        [
            int(c.start),
            *map(_price, (c.open, c.high, c.low, c.close, (c.high + c.low) / 2)),
            f"{c.volume:.8f}",
            1 + int(c.volume),
        ]
        for c in found
    ]
    return Reply.json({"error": [], "result": {pair_name(asset, quote): rows, "last": rows[-2][0]}})


def _price(price: float) -> str:
    return f"{price:.1f}" if price >= 1000 else _text(price)


@ohlc.form("drift")
def last_first(world: World, ask: Ask) -> Reply:
    """The scalar `last` before the rows, one column more."""
    found = market.candles(world, "BTC", int(ask.params.get("interval", "1")) * 60, ROWS, VENUE)
    rows = [[int(c.start), c.open, c.high, c.low, c.close, c.low, c.volume, 5, "x"] for c in found]
    return Reply.json({"error": [], "result": {"last": rows[-2][0], "XXBTZUSD": rows}})


@ticker.form("error200")
@ticker_all.form("error200")
@ticker.form("limited")
@ticker_all.form("limited")
@ohlc.form("error200")
@ohlc.form("limited")
def too_many(world: World, ask: Ask) -> Reply:
    return error("EGeneral:Too many requests")


@ticker.form("empty")
@ticker_all.form("empty")
@ohlc.form("empty")
def nothing(world: World, ask: Ask) -> Reply:
    return Reply.json({"error": [], "result": {}})


@ticker.form("status:503")
@ticker_all.form("status:503")
@ohlc.form("status:503")
def unavailable(world: World, ask: Ask) -> Reply:
    return Reply.json({"error": ["EService:Unavailable"]}, 503)
