"""Simulate Hyperliquid's info endpoint: two lists joined by position, and forecasts by venue."""

from collections.abc import Callable
from typing import Any

from tools.simulated.funding import Perpetual, mark, perpetuals, rate, settlement, text
from tools.simulated.market import DAY, change_percent, volume
from toolserver.world.model import Ask, Reply, World, serves


def _asks(kind: str) -> Callable[[Ask], bool]:
    """Match a request by its body: one path answers every question."""
    return lambda ask: kind in ask.body.decode(errors="replace")


ANSWERS = "api.hyperliquid.xyz", "/info", "POST"
TOO_MANY = Reply.json(None, 429)


@serves(
    "Hyperliquid.asset_contexts",
    *ANSWERS,
    when=_asks("metaAndAssetCtxs"),
    forms={"empty": Reply.json([{"universe": []}, []]), "limited": TOO_MANY},
)
def contexts(world: World, ask: Ask) -> Reply:
    universe, listed = _listed(world)
    return Reply.json([{"universe": universe}, listed])


@serves(
    "Hyperliquid.predicted_fundings",
    *ANSWERS,
    when=_asks("predictedFundings"),
    forms={"empty": Reply.json([]), "error200": Reply.json(None), "limited": TOO_MANY},
)
def predictions(world: World, ask: Ask) -> Reply:
    return Reply.json([[p.short, _forecasts(world, p)] for p in perpetuals(world)])


@contexts.form("error200")
def one_list_shorter(world: World, ask: Ask) -> Reply:
    """Return lists that must not be joined: a coin lacks its context."""
    universe, listed = _listed(world)
    return Reply.json([{"universe": universe}, listed[:-1]])


@contexts.form("drift")
def more_members(world: World, ask: Ask) -> Reply:
    """Return additional members, `isDelisted` in every row, and numbers in place of strings."""
    universe, listed = _listed(world)
    rows = [{"isDelisted": False, "onlyIsolated": True} | coin for coin in universe]
    numeric = [context | {"funding": float(context["funding"]), "predicted": None} for context in listed]
    return Reply.json([{"universe": rows, "marginTables": [], "collateralToken": 0}, numeric])


def _listed(world: World) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    listed = perpetuals(world)
    universe = [{"szDecimals": 2, "name": p.short, "maxLeverage": 20, "marginTableId": 51} for p in listed]
    contexts = [_context(world, p) for p in listed]
    delisted = {"szDecimals": 0, "name": "GONE", "maxLeverage": 3, "marginTableId": 3, "isDelisted": True}
    universe.insert(7, delisted)
    contexts.insert(7, contexts[0] | {"funding": "0.9", "midPx": None, "premium": None, "impactPxs": None})
    return universe, contexts


def _context(world: World, contract: Perpetual) -> dict[str, Any]:
    marked = mark(world, "hyperliquid", contract)
    before = marked / (1 + change_percent(world, contract.coin, DAY) / 100)
    traded = volume(world, contract.coin, world.now, DAY) / contract.units / 10
    return {
        "funding": text(rate(world, "hyperliquid", contract, 1), 10),
        "openInterest": text(traded / 3, 2),
        "prevDayPx": f"{before:.6g}",
        "dayNtlVlm": text(traded * marked, 6),
        "premium": "0.0002",
        "oraclePx": f"{marked * 0.9998:.6g}",
        "markPx": f"{marked:.6g}",
        "midPx": f"{marked * 1.0001:.6g}",
        "impactPxs": [f"{marked * 0.9999:.6g}", f"{marked * 1.0002:.6g}"],
        "dayBaseVlm": text(traded, 2),
    }


def _forecasts(world: World, contract: Perpetual) -> list[list[Any]]:
    """Return forecasts, null where a venue does not list the coin."""
    venues = (
        ("BinPerp", "binance", contract.hours),
        ("HlPerp", "hyperliquid", 1),
        ("BybitPerp", "bybit", contract.hours),
    )
    missing = world.pick("hyperliquid.unknown", contract.base, ["BinPerp", "BybitPerp", "", "", "", "", "", ""])
    return [[name, None if name == missing else _terms(world, venue, contract, hours)] for name, venue, hours in venues]


def _terms(world: World, venue: str, contract: Perpetual, hours: int) -> dict[str, Any]:
    return {
        "fundingRate": text(rate(world, venue, contract, hours)),
        "nextFundingTime": settlement(world, hours),
        "fundingIntervalHours": hours,
    }
