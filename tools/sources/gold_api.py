"""Read the spot price of gold from Gold-API (JSON, no key, terms unclear).

https://gold-api.com/docs
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import PRICE_JUMP, from_iso, number, within
from tools.sources.hosts import DAY, other
from toolserver import Gauge, Get, Licence, Source

PRICE = "https://api.gold-api.com/price/XAU"
LICENCE = Licence("unclear", "Gold-API", "https://gold-api.com/docs")
PLAUSIBLE = (500, 20_000)  # USD per troy ounce


class GoldPrice(NamedTuple):
    """The price of a troy ounce of gold, and when it was set."""

    usd_per_ounce: float
    updated_at: datetime


def parse(body: Any, query: None) -> GoldPrice:
    """Return the price in dollars. Raises ValueError for another metal or currency."""
    if (body.get("symbol", "XAU"), body.get("currency", "USD")) != ("XAU", "USD"):
        raise ValueError(f"{body.get('symbol')!r:.10} in {body.get('currency')!r:.10}")
    return GoldPrice(within(number(body["price"]), *PLAUSIBLE), from_iso(body["updatedAt"]))


XAU_SPOT = Source(
    "GoldApi.xau_spot",
    Get(PRICE),
    parse,
    licence=LICENCE,
    hosts=other("gold-api"),
    fresh_s=120,
    timeout_s=6,
    newest=lambda price: price.updated_at,
    newest_max_s=4 * DAY,  # the market closes over long weekends
    gauge=Gauge(lambda price: {"XAU-USD": price.usd_per_ounce}, PRICE_JUMP),
)
