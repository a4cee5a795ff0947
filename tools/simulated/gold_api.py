"""Simulate Gold-API on the wire: one metal, a number for the price, a time to the second."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated import market
from toolserver.world.model import Ask, Reply, World, serves

STEP_S = 10.0  # how often the price changes


def spot(world: World) -> float:
    """Return dollars per troy ounce, as quoted."""
    return round(market.price(world, "XAU", set_at(world)), 2)


def set_at(world: World) -> float:
    """Return when the current price was set."""
    return world.now - world.now % STEP_S


FORMS = {
    "empty": Reply.json({}),
    "error200": Reply.json({"error": "Something went wrong"}),
    "limited": Reply.json({"error": "Too many requests"}, 429),
}


@serves("GoldApi.xau_spot", "api.gold-api.com", "/price/XAU", forms=FORMS)
def price(world: World, ask: Ask) -> Reply:
    return Reply.json(_body(world))


def _body(world: World) -> dict[str, Any]:
    return {
        "currency": "USD",
        "currencySymbol": "$",
        "exchangeRate": 1.0,
        "name": "Gold",
        "price": spot(world),
        "symbol": "XAU",
        "updatedAt": datetime.fromtimestamp(set_at(world), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "updatedAtReadable": "a few seconds ago",
    }


@price.form("drift")
def as_string(world: World, ask: Ask) -> Reply:
    """Return the price as a string, the time with milliseconds, and other members."""
    body = _body(world)
    at = body["updatedAt"].replace("Z", ".123Z")
    return Reply.json({"updatedAt": at, "price": f"{body['price']:.2f}", "name": "Gold", "high": None})
