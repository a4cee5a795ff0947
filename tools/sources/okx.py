"""OKX spot tickers (JSON, no key; redistribution is barred).

https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-tickers
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.shared.numbers import number, number_or_none, within
from tools.shared.text import clean
from tools.shared.times import from_epoch_ms
from tools.sources.coinbase import JUMP, traded
from tools.sources.hosts import EXCHANGES
from toolserver.errors import SourceChanged, SourceLimited, SourceRefused
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

API = "https://www.okx.com/api/v5"
LICENCE = Licence("no", "OKX", "https://www.okx.com/help/terms-of-service")
PRICES = ("last", "open24h", "high24h", "low24h")
LIMITED = {"50011", "50061"}
BUSY = {"50001", "50004", "50013", "50026"}  # service down, timed out, busy, system error


class SpotTicker(NamedTuple):
    """A pair's last 24 hours. `open` is the price 24 hours ago, `quote_volume` is in the quote currency."""

    base: str
    quote: str
    last: float
    open: float
    high: float
    low: float
    quote_volume: float
    at: datetime


def checked(body: Any) -> list[Any]:
    """`data`, when `code` is "0": errors come with status 200."""
    code = str(body["code"])
    if code == "0":
        return body["data"]  # type: ignore[no-any-return]
    text = clean(f"{code} {body.get('msg', '')}", 80)
    if code in LIMITED:
        raise SourceLimited(text)
    raise (SourceRefused if code in BUSY else SourceChanged)(text)


def request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/market/tickers", params={"instType": "SPOT"})


def parse(body: Any, query: None) -> tuple[SpotTicker, ...]:
    """Every pair that was traded; a new or halted one has empty prices or zeros."""
    return tuple(_ticker(row) for row in checked(body) if all(number_or_none(row[name]) for name in PRICES))


def _ticker(row: dict[str, Any]) -> SpotTicker:
    base, quote = clean(row["instId"], 40).split("-")
    high, low = traded(row["high24h"]), traded(row["low24h"])
    return SpotTicker(
        base=base,
        quote=quote,
        last=traded(row["last"]),
        open=traded(row["open24h"]),
        high=high,
        low=within(low, 0, high),
        quote_volume=within(number(row["volCcy24h"]), 0, 1e18),
        at=from_epoch_ms(row["ts"]),
    )


def newest(tickers: tuple[SpotTicker, ...]) -> datetime | None:
    return max((ticker.at for ticker in tickers), default=None)


def _gauged(tickers: tuple[SpotTicker, ...]) -> dict[str, float]:
    return {f"{t.base}-USD": t.last for t in tickers if t.quote == "USDT" and t.base in ("BTC", "ETH")}


SPOT_TICKERS = Source(
    "OKX.spot_tickers",
    request,
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    keep_s=86400,
    timeout_s=8,
    newest=newest,
    least=100,
    untrusted=True,
    gauge=Gauge(_gauged, JUMP),
)
