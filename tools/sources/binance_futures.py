"""Read Binance USD-margined futures: funding of every perpetual contract (JSON, no key, closed to some countries).

https://developers.binance.com/docs/derivatives/usds-margined-futures/market-data/rest-api/Mark-Price
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import clean, from_epoch_ms, positive, within
from tools.parsing.funding import Funding, mark, rate, settlement, usdt_pair
from tools.parsing.providers import BINANCE_LICENCE, refuse_binance_error
from tools.sources.hosts import EXCHANGES, HOUR, MINUTE
from toolserver import Get, Source, SourceChanged, read_rows

API = "https://fapi.binance.com/fapi/v1"
USUAL_HOURS = 8.0  # of every contract that is missing in the list of intervals


class Premium(NamedTuple):
    """A perpetual contract against USDT, by its exchange symbol (BTCUSDT); its interval comes from another request."""

    symbol: str
    rate: float
    mark_price: float | None
    next_at: datetime
    at: datetime


def parse_premiums(body: Any, query: None) -> tuple[Premium, ...]:
    """Return every perpetual contract against USDT. Contracts with a delivery date have no settlement."""
    return read_rows(_rows(body), _premium)


def _rows(body: Any) -> list[Any]:
    refuse_binance_error(body)
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    return body


def _premium(row: dict[str, Any]) -> Premium | None:
    symbol = clean(row["symbol"], 40)
    paid, next_at = rate(row["lastFundingRate"]), settlement(row["nextFundingTime"])
    if not symbol.endswith("USDT") or "_" in symbol or paid is None or next_at is None:
        return None
    return Premium(symbol, paid, mark(row.get("markPrice")), next_at, from_epoch_ms(row["time"]))


def parse_intervals(body: Any, query: None) -> dict[str, float]:
    """Return the hours between settlements of contracts with adjusted terms; all others settle every eight hours."""
    return dict(read_rows(_rows(body), _interval))


def _interval(row: dict[str, Any]) -> tuple[str, float]:
    return clean(row["symbol"], 40), within(positive(row["fundingIntervalHours"]), 0.25, 24)


def fundings(premiums: Iterable[Premium], intervals: Mapping[str, float]) -> tuple[Funding, ...]:
    """Combine rates and intervals."""
    return tuple(
        Funding(usdt_pair(p.symbol), p.rate, intervals.get(p.symbol, USUAL_HOURS), p.mark_price, p.next_at, p.at)
        for p in premiums
    )


PREMIUMS = Source(
    "BinanceFutures.premium_index",
    Get(f"{API}/premiumIndex"),
    parse_premiums,
    licence=BINANCE_LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=6 * HOUR,
    newest=lambda premiums: max((p.at for p in premiums), default=None),
    newest_max_s=5 * MINUTE,
    least=100,
    untrusted=True,
)

INTERVALS = Source(
    "BinanceFutures.premium_index",
    Get(f"{API}/fundingInfo"),
    parse_intervals,
    licence=BINANCE_LICENCE,
    hosts=EXCHANGES,
    fresh_s=6 * HOUR,
    ageless="terms of contracts, which change weeks apart and carry no timestamp",
    keep_s=6 * HOUR,
    key=lambda query: "intervals",  # one name, two requests: kept apart
    least=1,  # the list always has some: without them, every rate of theirs would be off by half
    untrusted=True,
)
