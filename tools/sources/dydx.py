"""dYdX chain indexer: every perpetual market (JSON, no key). Funding is settled every hour.

https://docs.dydx.xyz/indexer-client/http
"""

from typing import Any

from tools.shared.funding import Funding, dead, mark, rate
from tools.shared.text import clean
from tools.sources.hosts import EXCHANGES
from toolserver.upstream.source import Get, Keys, Licence, Source

MARKETS = "https://indexer.dydx.trade/v4/perpetualMarkets"
LICENCE = Licence("unclear", "dYdX", "https://dydx.exchange/terms")
HOURS = 1.0


def request(query: None, keys: Keys) -> Get:
    return Get(MARKETS)


def parse(body: Any, query: None) -> tuple[Funding, ...]:
    """Every active market that says what it will pay."""
    active = [(name, market) for name, market in body["markets"].items() if _traded(market)]
    return tuple(
        Funding(clean(name, 60), paid, HOURS, mark(market.get("oraclePrice")), None)
        for name, market in active
        if (paid := rate(market["nextFundingRate"])) is not None
    )


def _traded(market: dict[str, Any]) -> bool:
    return market["status"] == "ACTIVE" and not dead(market.get("oraclePrice"))


PERPETUAL_MARKETS = Source(
    "Dydx.perpetual_markets",
    request,
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=21600,
    timeout_s=8,
    least=10,
    untrusted=True,
)
