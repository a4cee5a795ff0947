"""Simulate CoinGecko's market list on the wire."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.market import DAY, HOUR, STABLE, SimCoin, change_percent, coins, day, price, volume
from toolserver.world.model import Ask, Reply, World, expects, serves

WRAPPED = {"WBTC"}


def _quota(status: int) -> Reply:
    text = (
        "You've exceeded the Rate Limit. Please visit https://www.coingecko.com/en/api/pricing "
        "to subscribe to our API plans for higher rate limits."
    )
    return Reply.json({"status": {"error_code": 429, "error_message": text}}, status)


FORMS = {
    "empty": Reply.json([], content_type="application/json; charset=utf-8"),
    "limited": _quota(429),
    "error200": _quota(200),
}


@serves("CoinGecko.markets", "api.coingecko.com", "/api/v3/coins/markets", forms=FORMS)
def markets(world: World, ask: Ask) -> Reply:
    spans = ask.params.get("price_change_percentage", "").split(",")
    count = int(ask.params.get("per_page", "100"))
    listed = [_row(world, coin, rank, spans) for rank, coin in enumerate(coins(count), 1)]
    return Reply.json(listed, content_type="application/json; charset=utf-8")


@markets.form("drift")
def fewer_figures(world: World, ask: Ask) -> Reply:
    """Return null optional members, additional members, and wrapped coins without a rank."""
    listed = [_row(world, coin, rank, ["24h"]) for rank, coin in enumerate(coins(), 1)]
    for row in listed:
        wrapped = row["symbol"].upper() in WRAPPED
        row |= {"market_cap_rank_with_rehypothecated": row["market_cap_rank"], "high_24h": None, "low_24h": None}
        row |= {"market_cap_rank": None if wrapped else row["market_cap_rank"], "image": None}
    return Reply.json(listed)


def _row(world: World, coin: SimCoin, rank: int, spans: list[str]) -> dict[str, Any]:
    asset = coin.symbol
    now, change = price(world, asset, venue="coingecko"), change_percent(world, asset, DAY)
    past = day(world, asset, "coingecko")
    before = now / (1 + change / 100)
    cap = now * coin.supply
    identity = coin.name.lower().replace(" ", "-")
    row: dict[str, Any] = {
        "id": identity,
        "symbol": asset.lower(),
        "name": coin.name,
        "image": f"https://coin-images.coingecko.com/coins/images/{rank}/large/{identity}.png?1696501400",
        "current_price": _short(now),
        "market_cap": round(cap),
        "market_cap_rank": rank,
        "fully_diluted_valuation": round(cap * 1.05),
        "total_volume": round(volume(world, asset, world.now, DAY) * now),
        "high_24h": _short(max(past.high, now)),
        "low_24h": _short(min(past.low, now)),
        "price_change_24h": now - before,
        "price_change_percentage_24h": round(change, 5),
        "market_cap_change_24h": (now - before) * coin.supply,
        "market_cap_change_percentage_24h": round(change, 5),
        "circulating_supply": float(coin.supply),
        "total_supply": float(coin.supply),
        "max_supply": 21000000.0 if asset == "BTC" else None,
        "ath": _short(coin.base * 1.9),
        "ath_change_percentage": -47.3,
        "ath_date": "2025-10-06T18:57:42.558Z",
        "atl": _short(coin.base / 500),
        "atl_change_percentage": 49900.0,
        "atl_date": "2015-10-20T00:00:00.000Z",
        "roi": {"times": 36.5, "currency": "btc", "percentage": 3650.0} if asset == "ETH" else None,
        "last_updated": _milliseconds(world.now - 5 - 30 * world.u("coingecko.seen", asset)),
    }
    seconds = {"1h": HOUR, "24h": DAY, "7d": 7 * DAY}
    changes = {span: change_percent(world, asset, seconds[span]) for span in spans if span in seconds}
    return row | {f"price_change_percentage_{span}_in_currency": value for span, value in changes.items()}


def _short(value: float) -> float | int:
    """Round as the list does: whole numbers from 10,000 up, cents above one, a few digits below."""
    if value >= 10000:
        return round(value)
    return round(value, 2) if value >= 1 else float(f"{value:.6g}")


def _milliseconds(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@expects("crypto-movers")
def expected(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the coins that `/api/crypto-movers` must have at this instant when CoinGecko answers."""
    changes = {c.symbol: change_percent(world, c.symbol, DAY) for c in coins()}
    eligible = [c for c in coins() if c.symbol not in STABLE | WRAPPED and not _at_par(world, c.symbol, changes)]
    top = sorted(eligible, key=lambda c: abs(changes[c.symbol]), reverse=True)[:15]
    return [{"symbol": c.symbol, "name": c.name, "change_24h_percent": round(changes[c.symbol], 2)} for c in top]


def _at_par(world: World, asset: str, changes: Mapping[str, float]) -> bool:
    return 0.98 <= price(world, asset, venue="coingecko") <= 1.02 and abs(changes[asset]) < 1
