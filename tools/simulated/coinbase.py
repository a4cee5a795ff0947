"""Simulate Coinbase on the wire: numbers as strings in statistics and spot prices, as numbers in candles."""

from collections.abc import Mapping
from typing import Any

from tools.simulated import market
from toolserver.world.model import Ask, Reply, World, expects, serves

VENUE = "coinbase"
LENGTHS = {60, 300, 900, 3600, 21600, 86400}
MOST = 300  # candles of one answer


def quoted(price: float) -> str:
    """Return a price with the number of decimals that venues use."""
    return f"{price:.2f}" if price >= 1 else f"{price:.8f}" if price >= 0.001 else f"{price:.12f}"


def _asset(product: str) -> str | None:
    base, _, quote = product.partition("-")
    return base if quote == "USD" and base in market.BASES else None


def _not_found() -> Reply:
    return Reply.json({"message": "NotFound"}, 404)


FORMS = {
    "limited": Reply.json({"message": "Public rate limit exceeded"}, 429),
    "geo": Reply.json({"message": "Forbidden"}, 403),
    "status:503": Reply.json({"message": "ServiceUnavailable"}, 503),
}


@serves(
    "Coinbase.product_stats",
    "api.exchange.coinbase.com",
    "/products/{product}/stats",
    forms=FORMS | {"empty": Reply.json({})},
)
def stats(world: World, ask: Ask) -> Reply:
    asset = _asset(ask.parts["product"])
    return Reply.json(_stats(world, asset)) if asset else _not_found()


def _stats(world: World, asset: str) -> dict[str, str]:
    day = market.day(world, asset, VENUE)
    return {
        "open": quoted(day.open),
        "high": quoted(day.high),
        "low": quoted(day.low),
        "last": quoted(day.last),
        "volume": f"{day.volume:.8f}",
        "volume_30day": f"{day.volume * 30:.8f}",
        "rfq_volume_24hour": f"{day.volume / 500:.6f}",
        "rfq_volume_30day": f"{day.volume / 17:.6f}",
    }


@stats.form("drift")
def stats_as_numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, in another order, with one more member."""
    row = _stats(world, _asset(ask.parts["product"]) or "BTC")
    return Reply.json({"conversions_volume": "0.00"} | {name: float(row[name]) for name in reversed(row)})


@serves(
    "Coinbase.candles",
    "api.exchange.coinbase.com",
    "/products/{product}/candles",
    forms=FORMS | {"empty": Reply.json([])},
)
def candles(world: World, ask: Ask) -> Reply:
    asset, length = _asset(ask.parts["product"]), int(ask.params.get("granularity", "60"))
    if asset is None:
        return _not_found()
    if length not in LENGTHS:
        return Reply.json({"message": "Unsupported granularity"}, 400)
    return Reply.json(_rows(world, asset, length))


def _rows(world: World, asset: str, length: int) -> list[list[Any]]:
    candles = market.candles(world, asset, length, MOST, VENUE)
    rows = [
        [int(c.start), *(round(v, 2) for v in (c.low, c.high, c.open, c.close)), round(c.volume, 8)] for c in candles
    ]
    return rows[::-1]


@candles.form("drift")
def candles_as_strings(world: World, ask: Ask) -> Reply:
    rows = _rows(world, "BTC", int(ask.params.get("granularity", "60")))
    return Reply.json([[row[0], *map(str, row[1:])] for row in rows])


@serves("Coinbase.spot_price", "api.coinbase.com", "/v2/prices/{pair}/spot", forms=FORMS)
def spot(world: World, ask: Ask) -> Reply:
    asset = _asset(ask.parts["pair"])
    if asset is None:
        error = {"id": "not_found", "message": "Invalid base currency"}
        return Reply.json({"errors": [error], "code": 5, "message": "Invalid base currency", "details": []}, 404)
    amount = quoted(market.price(world, asset, venue=VENUE))
    return Reply.json({"data": {"amount": amount, "base": asset, "currency": "USD"}})


@expects("btc-price")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/btc-price` must have at this instant when Coinbase answers."""
    day = market.day(world, "BTC", VENUE)
    return {
        "price_usd": round(day.last, 2),
        "change_24h_percent": round((day.last - day.open) / day.open * 100, 2),
        "high_24h": round(day.high, 2),
        "low_24h": round(day.low, 2),
        "volume_24h_usd": round(day.volume * day.last),
        "venue": VENUE,
        "quote": "USD",
        "symbol": "BTC",
        "name": "Bitcoin",
    }
