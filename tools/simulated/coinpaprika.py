"""Simulate CoinPaprika's ticker list on the wire: every coin, including unranked ones."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.market import DAY, HOUR, SimCoin, change_percent, coins, price, volume
from toolserver.world.model import Ask, Reply, World, serves

FORMS = {
    "empty": Reply.json([]),
    "limited": Reply.json({"type": "soft limit", "error": "Request limit exceeded."}, 429),
    "error200": Reply.json({"error": "internal error"}),
}


@serves("CoinPaprika.tickers", "api.coinpaprika.com", "/v1/tickers", forms=FORMS)
def tickers(world: World, ask: Ask) -> Reply:
    ranked = [_row(world, coin, rank) for rank, coin in enumerate(coins(250), 1)]
    small = [_named(row, f"S{row['rank']}") | {"rank": row["rank"] + 20} for row in ranked[230:]]
    gone = [_named(row, f"G{row['rank']}") | {"rank": 0} for row in ranked[:5]]
    return Reply.json([*ranked, *small, *gone])


def _named(row: dict[str, Any], symbol: str) -> dict[str, Any]:
    """Return another coin with the same numbers."""
    return row | {"id": f"{symbol.lower()}-{row['id']}", "symbol": symbol}


def _row(world: World, coin: SimCoin, rank: int) -> dict[str, Any]:
    asset = coin.symbol
    at = world.now - world.now % 60
    now = price(world, asset, venue="coinpaprika")
    return {
        "id": f"{asset.lower()}-{coin.name.lower().replace(' ', '-')}",
        "name": coin.name,
        "symbol": asset,
        "rank": rank,
        "total_supply": coin.supply,
        "max_supply": 21000000 if asset == "BTC" else 0,
        "beta_value": 0.91,
        "first_data_at": "2010-07-17T00:00:00Z",
        "last_updated": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "quotes": {
            "USD": {
                "price": now,
                "volume_24h": volume(world, asset, world.now, DAY) * now,
                "volume_24h_change_24h": round(20 * world.noise(f"{asset}.turnover", at / DAY), 2),
                "market_cap": round(now * coin.supply),
                "market_cap_change_24h": round(change_percent(world, asset, DAY), 2),
                "percent_change_15m": round(change_percent(world, asset, HOUR / 4), 2),
                "percent_change_1h": round(change_percent(world, asset, HOUR), 2),
                "percent_change_24h": round(change_percent(world, asset, DAY), 2),
                "percent_change_7d": round(change_percent(world, asset, 7 * DAY), 2),
                "ath_price": coin.base * 1.9,
                "ath_date": "2025-10-06T18:57:42Z",
                "percent_from_price_ath": -47.3,
            }
        },
    }
