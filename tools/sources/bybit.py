"""Read Bybit linear contracts: funding of every perpetual against USDT (JSON, no key, closed to some countries).

https://bybit-exchange.github.io/docs/v5/market/tickers
"""

from datetime import datetime
from typing import Any

from tools.parsing.fields import clean, from_epoch_ms, number, optional, positive
from tools.parsing.funding import Funding, mark, newest, rate, settlement, usdt_pair
from tools.sources.hosts import EXCHANGES, HOUR, MINUTE
from toolserver import Get, Licence, Source, SourceChanged, SourceError, SourceLimited, SourceRefused, read_rows

TICKERS_URL = "https://api.bybit.com/v5/market/tickers"
LICENCE = Licence("no", "Bybit", "https://www.bybit.com/en/terms-service/")
TOO_MANY, REFUSALS = {10006, 10018}, {10009, 10010, 10024}  # visits; banned or closed addresses


def parse(body: Any, query: None) -> tuple[Funding, ...]:
    """Return every perpetual against USDT that pays funding and states its interval."""
    if code := int(number(body["retCode"])):
        raise _failure(code)
    at = from_epoch_ms(body["time"])
    return read_rows(body["result"]["list"], lambda row: _funding(row, at))


def _failure(code: int) -> SourceError:
    if code in TOO_MANY:
        return SourceLimited(f"retCode {code}")
    return SourceRefused(f"retCode {code}") if code in REFUSALS else SourceChanged(f"retCode {code}")


def _funding(row: dict[str, Any], at: datetime) -> Funding | None:
    symbol = clean(row["symbol"], 40)
    paid, hours = rate(row["fundingRate"]), optional(positive, row.get("fundingIntervalHour"))
    if not symbol.endswith("USDT") or paid is None or hours is None:
        return None
    next_at = settlement(row.get("nextFundingTime"))
    return Funding(usdt_pair(symbol), paid, hours, mark(row.get("markPrice")), next_at, at)


LINEAR_TICKERS = Source(
    "Bybit.linear_tickers",
    Get(TICKERS_URL, params={"category": "linear"}),
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    keep_s=6 * HOUR,
    newest=newest,
    newest_max_s=5 * MINUTE,
    least=100,
    untrusted=True,
)
