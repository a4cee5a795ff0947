"""OKX swaps: funding and mark prices of every contract against USDT (JSON, no key).

https://www.okx.com/docs-v5/en/#public-data-rest-api-get-funding-rate
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tools.shared.funding import Funding, mark, newest, rate, settlement
from tools.shared.text import clean
from tools.sources.hosts import EXCHANGES
from tools.sources.okx import API, LICENCE, checked
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Source

SWAP = "-USDT-SWAP"
HOUR_S = 3600


def rates_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/public/funding-rate", params={"instId": "ANY"})


def parse_rates(body: Any, query: None) -> tuple[Funding, ...]:
    """Every swap against USDT, without mark prices; the period is the time between its next two settlements."""
    rows = [row for row in checked(body) if row["instId"].endswith(SWAP)]
    found = tuple(funding for row in rows if (funding := _funding(row)))
    if found and not any(funding.period_rate for funding in found):
        raise SourceChanged("every rate is 0")
    return found


def _funding(row: dict[str, Any]) -> Funding | None:
    paid, coming = rate(row["fundingRate"]), settlement(row["fundingTime"])
    following = settlement(row["nextFundingTime"])
    if paid is None or coming is None or following is None or following <= coming:
        return None
    hours = (following - coming).total_seconds() / HOUR_S
    return Funding(_pair(row["instId"]), paid, hours, None, coming, settlement(row.get("ts")))


def _pair(instrument: str) -> str:
    return clean(instrument, 60).removesuffix("-SWAP")


def marks_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/public/mark-price", params={"instType": "SWAP"})


def parse_marks(body: Any, query: None) -> dict[str, float]:
    """Mark prices of swaps against USDT by pair."""
    rows = [row for row in checked(body) if row["instId"].endswith(SWAP)]
    return {_pair(row["instId"]): price for row in rows if (price := mark(row["markPx"]))}


def with_marks(fundings: Iterable[Funding], marks: Mapping[str, float]) -> tuple[Funding, ...]:
    return tuple(f._replace(mark_price=marks.get(f.symbol)) for f in fundings)


FUNDING_RATES = Source(
    "OKX.funding_rates",
    rates_request,
    parse_rates,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=21600,
    timeout_s=8,
    newest=newest,
    least=50,
    untrusted=True,
)

MARK_PRICES = Source(
    "OKX.funding_rates",
    marks_request,
    parse_marks,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=21600,
    timeout_s=8,
    key=lambda query: "marks",  # one name, two requests: kept apart
    least=50,
    untrusted=True,
)
