"""Simulate Finnhub's quote: numbers under one-letter names, zeros for unknown symbols, a key in a header."""

from tools.simulated import stocks
from toolserver.world.model import Ask, Reply, World, serves

FORMS = {
    "auth": Reply.json({"error": "Invalid API key"}, 401),
    # as for an unknown symbol
    "empty": Reply.json({"c": 0, "d": None, "dp": None, "h": 0, "l": 0, "o": 0, "pc": 0, "t": 0}),
    "limited": Reply.json({"error": "API limit reached. Please try again later. Remaining Limit: 0"}, 429),
}


@serves("Finnhub.quote", "finnhub.io", "/api/v1/quote", forms=FORMS)
def quote(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.headers.get("x-finnhub-token")):
        return FORMS["auth"]
    symbol = ask.params["symbol"]
    if symbol in stocks.INDICES:
        return Reply.json({"error": "You don't have access to this resource."}, 403)
    if symbol not in stocks.SHARES:
        return FORMS["empty"]
    seen = stocks.trade(world, symbol)
    change = seen.last - seen.previous_close
    return Reply.json(
        {
            "c": seen.last,
            "d": round(change, 4),
            "dp": round(change / seen.previous_close * 100, 4),
            "h": max(seen.last, seen.open),
            "l": min(seen.last, seen.open),
            "o": seen.open,
            "pc": seen.previous_close,
            "t": int(seen.at),
        }
    )
