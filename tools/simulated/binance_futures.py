"""Simulate Binance futures on the wire: rates and intervals in two lists, numbers as strings."""

from typing import Any

from tools.simulated.funding import USUAL_HOURS, Perpetual, mark, perpetuals, rate, settlement, text
from tools.simulated.market import price
from toolserver.world.model import Ask, Reply, World, serves

HOST = "fapi.binance.com"
NAME = "BinanceFutures.premium_index"
BARRED = (
    "Service unavailable from a restricted location according to 'b. Eligibility' in https://www.binance.com/en/terms. "
    "Please contact customer service if you believe you received this message in error."
)
FORMS = {
    "geo": Reply.json({"code": 0, "msg": BARRED}, 451),
    "error200": Reply.json({"code": 0, "msg": BARRED}),
    "empty": Reply.json([]),
}


@serves(NAME, HOST, "/fapi/v1/premiumIndex", forms=FORMS)
def premium_index(world: World, ask: Ask) -> Reply:
    return Reply.json([*_usdt(world), *_others(world)])


@serves(NAME, HOST, "/fapi/v1/fundingInfo", forms=FORMS)
def funding_info(world: World, ask: Ask) -> Reply:
    """List only the intervals that differ from eight hours."""
    adjusted = [p for p in perpetuals(world) if p.hours != USUAL_HOURS]
    return Reply.json([_terms(p) for p in adjusted])


@premium_index.form("limited")
@funding_info.form("limited")
def banned(world: World, ask: Ask) -> Reply:
    until = int(world.now * 1000) + 120_000
    return Reply.json({"code": -1003, "msg": f"Way too much request weight used; IP banned until {until}."}, 418)


@premium_index.form("drift")
def numbers_for_strings(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, times as strings, and additional members."""
    rows = [dict(reversed(row.items())) for row in _usdt(world)]
    changed = [row | {"lastFundingRate": float(row["lastFundingRate"]), "time": str(row["time"])} for row in rows]
    return Reply.json([row | {"indexWeight": None} for row in changed])


def _usdt(world: World) -> list[dict[str, Any]]:
    return [_premium(world, contract) for contract in perpetuals(world)]


def _premium(world: World, contract: Perpetual) -> dict[str, Any]:
    marked = mark(world, "binance", contract)
    return {
        "symbol": f"{contract.base}USDT",
        "markPrice": text(marked),
        "indexPrice": text(marked * 1.0004),
        "estimatedSettlePrice": text(marked * 1.0002),
        "lastFundingRate": text(rate(world, "binance", contract, contract.hours)),
        "interestRate": "0.00010000",
        "nextFundingTime": settlement(world, contract.hours),
        "time": int(world.now * 1000) - 2000,
    }


def _others(world: World) -> list[dict[str, Any]]:
    """Return contracts of another quote currency, and those with a delivery date."""
    usdc = [row | {"symbol": row["symbol"].replace("USDT", "USDC")} for row in _usdt(world)[:5]]
    dated = {
        "symbol": "BTCUSDT_270326",
        "markPrice": text(price(world, "BTC", venue="binance") * 1.01),
        "indexPrice": text(price(world, "BTC", venue="binance")),
        "estimatedSettlePrice": text(price(world, "BTC", venue="binance")),
        "lastFundingRate": "0.00000000",
        "interestRate": "0.00000000",
        "nextFundingTime": 0,
        "time": int(world.now * 1000) - 2000,
    }
    return [*usdc, dated, dated | {"symbol": "ETHUSDT_270326", "nextFundingTime": "", "lastFundingRate": ""}]


def _terms(contract: Perpetual) -> dict[str, Any]:
    return {
        "symbol": f"{contract.base}USDT",
        "adjustedFundingRateCap": "0.02000000",
        "adjustedFundingRateFloor": "-0.02000000",
        "fundingIntervalHours": contract.hours,
        "disclaimer": False,
        "updateTime": None,
    }
