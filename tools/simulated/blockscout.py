"""Simulate Blockscout's statistics on the wire: counters as strings, gas prices as numbers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.ethereum_chain import GWEI, base_fee, head, tip
from tools.simulated.market import DAY, HOUR, change_percent, price
from toolserver.world.model import Ask, Reply, World, serves

PERIOD_S = 30
PERCENTILES = {"slow": 10, "average": 50, "fast": 90}


def prices(world: World) -> dict[str, float]:
    """Return gwei, as estimated from the newest block at the last update."""
    then = world.at(world.now - world.now % PERIOD_S)
    base, newest = base_fee(then, head(then) + 1), head(then)
    return {name: round((base + tip(then, newest, q)) / GWEI, 3) for name, q in PERCENTILES.items()}


FORMS = {
    "error200": Reply.json({"message": "Something went wrong."}),
    "limited": Reply.json({"message": "Too Many Requests"}, 429),
}


@serves("Blockscout.gas_prices", "eth.blockscout.com", "/api/v2/stats", forms=FORMS)
def stats(world: World, ask: Ask) -> Reply:
    return _stats(world, prices(world))


@stats.form("drift")
def objects(world: World, ask: Ask) -> Reply:
    """Return the newer form, in which each price is an object."""
    detailed = {
        name: {
            "base_fee": round(base_fee(world, head(world) + 1) / GWEI, 2),
            "fiat_price": "0.04",
            "price": gwei,
            "priority_fee": 0.01,
            "priority_fee_wei": "10000000",
            "time": 12000.0,
            "wei": str(int(gwei * GWEI)),
        }
        for name, gwei in prices(world).items()
    }
    return _stats(world, detailed)


@stats.form("empty")
def no_prices(world: World, ask: Ask) -> Reply:
    return _stats(world, None)


def _stats(world: World, gas_prices: Mapping[str, Any] | None) -> Reply:
    made_at = world.now - world.now % PERIOD_S
    hour = world.at(world.now - world.now % HOUR)
    return Reply.json(
        {
            "average_block_time": 12000.0,
            "coin_image": "https://coin-images.coingecko.com/coins/images/279/small/ethereum.png",
            "coin_price": f"{price(hour, 'ETH', venue='coingecko'):.2f}",
            "coin_price_change_percentage": round(change_percent(hour, "ETH", DAY), 2),
            "gas_price_updated_at": datetime.fromtimestamp(made_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "gas_prices": gas_prices,
            "gas_prices_update_in": int((made_at + PERIOD_S - world.now) * 1000),
            "gas_used_today": str(int(1.1e11 * (1 + 0.1 * world.noise("blockscout.gas", hour.now / DAY)))),
            "market_cap": f"{price(hour, 'ETH', venue='coingecko') * 120.6e6:.2f}",
            "network_utilization_percentage": 51.3,
            "secondary_coin_image": None,
            "secondary_coin_price": None,
            "static_gas_price": None,
            "total_addresses": "412345678",
            "total_blocks": str(head(world)),
            "total_gas_used": "0",
            "total_transactions": str(head(world) * 160),
            "transactions_today": "1412345",
            "tvl": None,
        }
    )
