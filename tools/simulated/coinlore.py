"""Simulate Coinlore's ticker list on the wire: most numbers are strings."""

from typing import Any

from tools.simulated.market import DAY, HOUR, SimCoin, change_percent, coins, price, volume
from toolserver.world.model import Ask, Reply, World, serves


@serves("Coinlore.tickers", "api.coinlore.net", "/api/tickers/")
def tickers(world: World, ask: Ask) -> Reply:
    start, limit = int(ask.params.get("start", "0")), int(ask.params.get("limit", "100"))
    ranked = list(enumerate(coins(), 1))[start : start + limit]
    return _page(world, [_row(world, coin, rank) for rank, coin in ranked])


@tickers.form("empty")
def no_coins(world: World, ask: Ask) -> Reply:
    return _page(world, [])


@tickers.form("drift")
def numbers_for_strings(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, ranks as strings, and empty optional members."""
    rows = [_row(world, coin, rank) for rank, coin in enumerate(coins(), 1)]
    numeric = ("price_usd", "percent_change_24h", "market_cap_usd")
    drifted = [row | {name: float(row[name]) for name in numeric} | {"percent_change_1h": ""} for row in rows]
    return _page(world, [row | {"rank": str(row["rank"])} for row in drifted])


def _page(world: World, rows: list[dict[str, Any]]) -> Reply:
    made_at = int(world.now - world.now % 60)
    return Reply.json({"data": rows, "info": {"coins_num": 13153, "time": made_at}})


def _row(world: World, coin: SimCoin, rank: int) -> dict[str, Any]:
    asset = coin.symbol
    now = price(world, asset, venue="coinlore")
    in_bitcoin = now / price(world, "BTC", venue="coinlore")
    traded = volume(world, asset, world.now, DAY) * now
    return {
        "id": str(80 + rank * 7),
        "symbol": asset,
        "name": coin.name,
        "nameid": coin.name.lower().replace(" ", "-"),
        "rank": rank,
        "price_usd": f"{now:.2f}" if now >= 1 else f"{now:.6g}",
        "percent_change_24h": f"{change_percent(world, asset, DAY):.2f}",
        "percent_change_1h": f"{change_percent(world, asset, HOUR):.2f}",
        "percent_change_7d": f"{change_percent(world, asset, 7 * DAY):.2f}",
        "price_btc": f"{in_bitcoin:.6f}" if in_bitcoin >= 1e-5 else f"{in_bitcoin:.2E}",
        "market_cap_usd": f"{now * coin.supply:.2f}",
        "volume24": round(traded, 4),
        "volume24a": round(traded * 0.8, 4),
        "csupply": f"{coin.supply:.2f}",
        "tsupply": f"{coin.supply:.0f}",
        "msupply": "21000000" if asset == "BTC" else ["", None][rank % 2],
    }
