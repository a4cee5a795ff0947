"""Read every perpetual market from the dYdX chain indexer (JSON, no key). Funding is settled every hour.

https://docs.dydx.xyz/indexer-client/http
"""

from typing import Any

from tools.parsing.fields import clean
from tools.parsing.funding import Funding, dead, mark, rate
from tools.sources.hosts import EXCHANGES, HOUR
from toolserver import Get, Licence, Source, read_rows

MARKETS = "https://indexer.dydx.trade/v4/perpetualMarkets"
LICENCE = Licence("unclear", "dYdX", "https://dydx.exchange/terms")
HOURS = 1.0


def parse(body: Any, query: None) -> tuple[Funding, ...]:
    """Return every active market that forecasts its funding."""
    return read_rows(body["markets"].items(), lambda pair: _funding(*pair))


def _funding(name: str, market: dict[str, Any]) -> Funding | None:
    if market["status"] != "ACTIVE" or dead(market.get("oraclePrice")):
        return None
    paid = rate(market["nextFundingRate"])
    return None if paid is None else Funding(clean(name, 60), paid, HOURS, mark(market.get("oraclePrice")), None)


PERPETUAL_MARKETS = Source(
    "Dydx.perpetual_markets",
    Get(MARKETS),
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    moves=lambda fundings: tuple(funding.mark_price for funding in fundings),
    keep_s=6 * HOUR,
    least=10,
    untrusted=True,
)
