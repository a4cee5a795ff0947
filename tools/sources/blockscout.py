"""Read gas price estimates for Ethereum from the Blockscout explorer (JSON, no key).

https://docs.blockscout.com/devs/apis/rest
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import from_iso, positive
from tools.sources.hosts import HOUR, MINUTE, other
from toolserver import Get, Licence, Source

STATS = "https://eth.blockscout.com/api/v2/stats"
LICENCE = Licence("unclear", "Blockscout", "https://docs.blockscout.com/")


class GasEstimate(NamedTuple):
    """The price of gas in gwei, base fee included, for three degrees of urgency."""

    slow_gwei: float
    average_gwei: float
    fast_gwei: float
    updated_at: datetime


def parse(body: Any, query: None) -> GasEstimate:
    """Return the three prices, each given as a number or as an object that holds one."""
    prices = body["gas_prices"]
    slow, average, fast = (_gwei(prices[name]) for name in ("slow", "average", "fast"))
    return GasEstimate(slow, average, fast, from_iso(body["gas_price_updated_at"]))


def _gwei(price: Any) -> float:
    return positive(price["price"] if isinstance(price, dict) else price)


GAS_PRICES = Source(
    "Blockscout.gas_prices",
    Get(STATS),
    parse,
    licence=LICENCE,
    hosts=other("blockscout"),
    fresh_s=30,
    keep_s=HOUR,
    newest=lambda estimate: estimate.updated_at,
    newest_max_s=10 * MINUTE,
)
