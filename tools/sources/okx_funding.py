"""Read OKX swaps: funding and mark prices of every contract against USDT (JSON, no key).

https://www.okx.com/docs-v5/en/#public-data-rest-api-get-funding-rate
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tools.parsing.fields import clean
from tools.parsing.funding import Funding, mark, newest, rate, settlement
from tools.parsing.providers import OKX_API, OKX_LICENCE, check_okx_body
from tools.sources.hosts import EXCHANGES, HOUR, MINUTE
from toolserver import Get, Source, SourceChanged, read_rows

SWAP = "-USDT-SWAP"
HOUR_S = 3600


def parse_rates(body: Any, query: None) -> tuple[Funding, ...]:
    """Return every swap against USDT, without mark prices; the period is the time between its next two settlements."""
    fundings = read_rows(check_okx_body(body), _funding)
    if fundings and not any(funding.period_rate for funding in fundings):
        raise SourceChanged("every rate is 0")
    return fundings


def _funding(row: dict[str, Any]) -> Funding | None:
    if not row["instId"].endswith(SWAP):
        return None
    paid, coming = rate(row["fundingRate"]), settlement(row["fundingTime"])
    following = settlement(row["nextFundingTime"])
    if paid is None or coming is None or following is None or following <= coming:
        return None
    hours = (following - coming).total_seconds() / HOUR_S
    return Funding(_pair(row["instId"]), paid, hours, None, coming, settlement(row.get("ts")))


def _pair(instrument: str) -> str:
    return clean(instrument, 60).removesuffix("-SWAP")


def parse_marks(body: Any, query: None) -> dict[str, float]:
    """Return mark prices of swaps against USDT by pair."""
    return dict(read_rows(check_okx_body(body), _mark))


def _mark(row: dict[str, Any]) -> tuple[str, float] | None:
    price = mark(row["markPx"]) if row["instId"].endswith(SWAP) else None
    return (_pair(row["instId"]), price) if price else None


def with_marks(fundings: Iterable[Funding], marks: Mapping[str, float]) -> tuple[Funding, ...]:
    return tuple(f._replace(mark_price=marks.get(f.symbol)) for f in fundings)


FUNDING_RATES = Source(
    "OKX.funding_rates",
    Get(f"{OKX_API}/public/funding-rate", params={"instId": "ANY"}),
    parse_rates,
    licence=OKX_LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=6 * HOUR,
    newest=newest,
    newest_max_s=5 * MINUTE,
    least=50,
    untrusted=True,
)

MARK_PRICES = Source(
    "OKX.funding_rates",
    Get(f"{OKX_API}/public/mark-price", params={"instType": "SWAP"}),
    parse_marks,
    licence=OKX_LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    moves=lambda marks: tuple(sorted(marks.items())),
    keep_s=6 * HOUR,
    key=lambda query: "marks",  # one name, two requests: kept apart
    least=50,
    untrusted=True,
)
