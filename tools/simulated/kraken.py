"""Simulate Kraken on the wire: arrays of strings under its own pair names, errors with status 200."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated import macro, market
from toolserver.world.model import Ask, Reply, World, serves

VENUE = "kraken"
OWN = {"BTC": "XBT", "DOGE": "XDG"}
LETTERED = {"BTC": "XXBT", "ETH": "XETH", "XRP": "XXRP", "LTC": "XLTC", "DOGE": "XXDG"}
LETTERED |= {code: f"Z{code}" for code in ("USD", "EUR", "GBP", "JPY", "CAD", "AUD")}
LONG = frozenset({"XXBT", "XETH", "XXRP", "XLTC"})  # in the names of their pairs too
MORE = {  # the quotes of some coins besides USD and USDT
    "BTC": ("EUR", "GBP", "USDC", "PYUSD", "AUSD"),
    "ETH": ("EUR", "GBP", "USDC", "PYUSD", "BTC"),
    "XRP": ("EUR", "RLUSD"),
    "SOL": ("EUR", "BTC"),
}
SHARES = {
    "USD": 1.0,
    "EUR": 0.45,
    "GBP": 0.04,
    "USDC": 0.06,
    "PYUSD": 0.002,
    "AUSD": 0.001,
    "RLUSD": 0.003,
    "BTC": 0.02,
}
TETHER = {"BTC": 1 / 9, "ETH": 1 / 18}  # of the trade in dollars; a tenth for other coins
FIAT = {("EUR", "USD"), ("GBP", "USD"), ("USD", "JPY"), ("USD", "CAD")}
DOLLARS = ("PYUSD", "RLUSD")  # stable coins that this world's market does not list; AUSD has no pair of its own
ROWS = 120  # upstream up to 720


def pair_name(asset: str, quote: str) -> str:
    """Return the key of a pair in an answer: with the letters for the oldest pairs, without them for the rest."""
    base, other = LETTERED.get(asset, asset), LETTERED.get(quote, quote)
    if asset == "USDT" and quote == "USD":
        return "USDTZUSD"
    if {base[0], other[0]} <= {"X", "Z"} and (base in LONG or (asset, quote) in FIAT) and len(base) == len(other) == 4:
        return base + other
    return OWN.get(asset, asset) + OWN.get(quote, quote)


COINS = [coin.symbol for coin in market.coins()]
PAIRS = {(coin, quote) for coin in COINS for quote in ("USD", "USDT") if coin != "USDT" or quote == "USD"}
PAIRS |= {(coin, quote) for coin, quotes in MORE.items() for quote in quotes}
PAIRS |= FIAT | {(dollar, "USD") for dollar in DOLLARS}
ASKED = {OWN.get(asset, asset) + OWN.get(quote, quote): (asset, quote) for asset, quote in PAIRS}
ASKED |= {pair_name(*pair): pair for pair in PAIRS}


def in_usd(world: World, asset: str, at: float | None = None) -> float:
    """Return the price in USD of a coin, a currency or a stable coin."""
    at = world.now if at is None else at
    if asset in market.BASES:
        return market.price(world, asset, at, VENUE)
    day = datetime.fromtimestamp(at, UTC).date()
    return 1 / macro.per_usd(world, asset, day) if asset in macro.PER_USD else 1.0


def error(text: str) -> Reply:
    return Reply.json({"error": [text]})


def _one_pair(ask: Ask) -> bool:
    return "pair" in ask.params


FORMS = {
    "error200": error("EGeneral:Too many requests"),
    "limited": error("EGeneral:Too many requests"),
    "empty": Reply.json({"error": [], "result": {}}),
    "status:503": Reply.json({"error": ["EService:Unavailable"]}, 503),
}


@serves("Kraken.ticker_all", "api.kraken.com", "/0/public/Ticker", when=lambda ask: not _one_pair(ask), forms=FORMS)
def ticker_all(world: World, ask: Ask) -> Reply:
    return Reply.json({"error": [], "result": _all(world)})


@serves("Kraken.ticker", "api.kraken.com", "/0/public/Ticker", when=_one_pair, forms=FORMS)
def ticker(world: World, ask: Ask) -> Reply:
    pair = ask.params["pair"]
    if pair not in ASKED:
        return error("EQuery:Unknown asset pair")
    asset, quote = ASKED[pair]
    return Reply.json({"error": [], "result": {pair_name(asset, quote): _ticker(world, asset, quote)}})


def _all(world: World) -> dict[str, Any]:
    listed = {pair_name(asset, quote): _ticker(world, asset, quote) for asset, quote in sorted(PAIRS)}
    nobody = {"v": ["0.00000000"] * 2, "p": ["0.00000"] * 2, "t": [0, 0], "l": ["0.00000"] * 2, "h": ["0.00000"] * 2}
    dead = {"a": ["0.00000", "0", "0.000"], "b": ["0.00000", "0", "0.000"], "c": ["0.00000", "0.00000000"], **nobody}
    return listed | {"GONEUSD": dead | {"o": "0.00000"}}


def share(asset: str, quote: str) -> float:
    """Return the trade of a pair as a share of that of the asset in dollars."""
    return TETHER.get(asset, 0.1) if quote == "USDT" else SHARES.get(quote, 1.0)


def _day(world: World, asset: str, quote: str) -> market.Day:
    """Return the past 24 hours of a pair, in its quote currency."""
    rate = in_usd(world, quote)
    if asset not in market.BASES:
        last = in_usd(world, asset) / rate
        return market.Day(last, last, last, last, 1e6)
    day = market.day(world, asset, VENUE)
    traded = day.volume * share(asset, quote)
    return market.Day(day.open / rate, day.high / rate, day.low / rate, day.last / rate, traded)


def _ticker(world: World, asset: str, quote: str = "USD") -> dict[str, Any]:
    day = _day(world, asset, quote)
    today = world.now - world.now % market.DAY
    opened = in_usd(world, asset, today) / in_usd(world, quote)
    passed = (world.now - today) / market.DAY
    mean = (day.open + day.high + day.low + day.last) / 4
    trades = int(day.volume * day.last * in_usd(world, quote) / 700) + 1
    return {
        "a": [_text(day.last * 1.00001), "1", "1.000"],
        "b": [_text(day.last * 0.99999), "1", "1.000"],
        "c": [_text(day.last), "0.00603612"],
        "v": [f"{day.volume * passed:.8f}", f"{day.volume:.8f}"],
        "p": [_text((opened + day.last) / 2), _text(mean)],
        "t": [int(trades * passed), trades],
        "l": [_text(min(opened, day.last)), _text(day.low)],
        "h": [_text(max(opened, day.last)), _text(day.high)],
        "o": _text(opened),
    }


@serves("Kraken.asset_pairs", "api.kraken.com", "/0/public/AssetPairs", forms=FORMS)
def asset_pairs(world: World, ask: Ask) -> Reply:
    return Reply.json({"error": [], "result": {pair_name(*pair): _pair(*pair) for pair in sorted(PAIRS)}})


@asset_pairs.form("drift")
def pairs_without_names(world: World, ask: Ask) -> Reply:
    """Return pairs with base and quote but without `wsname`, like pairs that Kraken's feed does not have."""
    rows = {pair_name(*pair): _pair(*pair) for pair in sorted(PAIRS)}
    for row in rows.values():
        del row["wsname"]
    return Reply.json({"error": [], "result": rows})


def _pair(asset: str, quote: str) -> dict[str, Any]:
    base, other = OWN.get(asset, asset), OWN.get(quote, quote)
    return {
        "altname": base + other,
        "wsname": f"{base}/{other}",
        "aclass_base": "currency",
        "base": LETTERED.get(asset, asset),
        "aclass_quote": "currency",
        "quote": LETTERED.get(quote, quote),
        "lot": "unit",
        "cost_decimals": 5,
        "pair_decimals": 5,
        "lot_decimals": 8,
        "lot_multiplier": 1,
        "leverage_buy": [],
        "leverage_sell": [],
        "fees": [[0, 0.4]],
        "fees_maker": [[0, 0.25]],
        "fee_volume_currency": "ZUSD",
        "margin_call": 80,
        "margin_stop": 40,
        "ordermin": "0.5",
        "costmin": "0.5",
        "tick_size": "0.00001",
        "status": "online",
    }


def _text(price: float) -> str:
    return f"{price:.5f}" if price >= 1 else f"{price:.12f}"


@ticker.form("drift")
@ticker_all.form("drift")
def ticker_as_numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, another order, one more member, and no opening price."""
    pair = ask.params.get("pair")
    rows = _all(world) if pair is None else {pair_name(*ASKED[pair]): _ticker(world, *ASKED[pair])}
    changed = {
        name: {"n": [1.0]} | {k: [*map(float, v)] for k, v in row.items() if k != "o"} for name, row in rows.items()
    }
    return Reply.json({"result": changed, "error": []})


@serves("Kraken.ohlc", "api.kraken.com", "/0/public/OHLC", forms=FORMS)
def ohlc(world: World, ask: Ask) -> Reply:
    pair, minutes = ask.params.get("pair", ""), int(ask.params.get("interval", "1"))
    if pair not in ASKED:
        return error("EQuery:Unknown asset pair")
    asset, quote = ASKED[pair]
    candles = market.candles(world, asset, minutes * 60, ROWS, VENUE)
    rows = [
        [
            int(c.start),
            *map(_price, (c.open, c.high, c.low, c.close, (c.high + c.low) / 2)),
            f"{c.volume:.8f}",
            1 + int(c.volume),
        ]
        for c in candles
    ]
    return Reply.json({"error": [], "result": {pair_name(asset, quote): rows, "last": rows[-2][0]}})


def _price(price: float) -> str:
    return f"{price:.1f}" if price >= 1000 else _text(price)


@ohlc.form("drift")
def last_first(world: World, ask: Ask) -> Reply:
    """Return the scalar `last` before the rows, and one more column."""
    candles = market.candles(world, "BTC", int(ask.params.get("interval", "1")) * 60, ROWS, VENUE)
    rows = [[int(c.start), c.open, c.high, c.low, c.close, c.low, c.volume, 5, "x"] for c in candles]
    return Reply.json({"error": [], "result": {"last": rows[-2][0], "XXBTZUSD": rows}})
