"""Simulate dYdX's perpetual markets at its indexer: an object of objects, decimals as strings."""

from typing import Any

from tools.simulated.funding import Perpetual, mark, perpetuals, rate, text
from tools.simulated.market import DAY, HOUR, change_percent, volume
from toolserver.world.model import Ask, Reply, World, serves

FORMS = {
    "empty": Reply.json({"markets": {}}),
    "limited": Reply.json({"errors": [{"msg": "Too many requests"}]}, 429),
    "error200": Reply.json({"errors": [{"msg": "Internal Server Error"}]}),
    "geo": Reply.json(
        {
            "errors": [
                {
                    "msg": "Because you appear to be a resident of, or trading from, a jurisdiction that violates our"
                    " terms of use.",
                    "code": "GEOBLOCKED",
                }
            ]
        },
        403,
    ),
}


@serves("Dydx.perpetual_markets", "indexer.dydx.trade", "/v4/perpetualMarkets", forms=FORMS)
def perpetual_markets(world: World, ask: Ask) -> Reply:
    markets = {f"{p.base}-USD": _market(world, p, i) for i, p in enumerate(perpetuals(world))}
    closed = next(iter(markets.values())) | {
        "ticker": "OLD-USD",
        "status": "FINAL_SETTLEMENT",
        "nextFundingRate": "0.5",
    }
    new = closed | {"ticker": "NEW-USD", "status": "INITIALIZING", "oraclePrice": None, "nextFundingRate": "0"}
    return Reply.json({"markets": {**markets, "OLD-USD": closed, "NEW-USD": new}})


def _market(world: World, contract: Perpetual, index: int) -> dict[str, Any]:
    hour = world.at(world.now - world.now % HOUR)
    oracle = mark(world, "dydx", contract)
    traded = volume(hour, contract.coin, hour.now, DAY) / contract.units / 20
    return {
        "clobPairId": str(index),
        "ticker": f"{contract.base}-USD",
        "status": "ACTIVE",
        "oraclePrice": f"{oracle:.10g}",
        "priceChange24H": f"{oracle * change_percent(world, contract.coin, DAY) / 100:.8g}",
        "volume24H": text(traded * oracle, 4),
        "trades24H": int(world.between("dydx.trades", contract.base, 100, 60000)),
        "nextFundingRate": text(rate(world, "dydx", contract, 1), 20),
        "initialMarginFraction": "0.02",
        "maintenanceMarginFraction": "0.012",
        "openInterest": text(traded / 2, 4),
        "atomicResolution": -10,
        "quantumConversionExponent": -9,
        "tickSize": "1",
        "stepSize": "0.0001",
        "stepBaseQuantums": 1000000,
        "subticksPerTick": 100000,
        "marketType": "CROSS",
        "openInterestLowerCap": "0",
        "openInterestUpperCap": "0",
        "baseOpenInterest": text(traded / 2, 4),
        "defaultFundingRate1H": "0",
    }
