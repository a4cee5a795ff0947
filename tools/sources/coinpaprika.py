"""CoinPaprika: every listed coin, of which the 100 largest are kept (JSON, no key, non-commercial).

https://api.coinpaprika.com/#tag/Tickers
"""

from typing import Any

from tools.shared.coins import GAUGE, Coin, amount, figure, newest, ranked, with_bitcoin
from tools.shared.optional import optional
from tools.shared.text import NAME, clean
from tools.shared.times import from_iso
from tools.sources.hosts import COINPAPRIKA
from toolserver.errors import SourceChanged
from toolserver.upstream.source import MIB, Get, Keys, Licence, Source

TICKERS_URL = "https://api.coinpaprika.com/v1/tickers"
LICENCE = Licence("non_commercial", "CoinPaprika", "https://coinpaprika.com/api/")
KEPT = 100


def request(query: None, keys: Keys) -> Get:
    return Get(TICKERS_URL)


def parse(body: Any, query: None) -> tuple[Coin, ...]:
    """The rows of rank 1 to 100 with a price, by rank; rank 0 marks what is no longer traded."""
    if isinstance(body, dict):
        raise SourceChanged(f"an object: {clean(str(body.get('error')), 60)}")
    top = [(rank, row) for row in body if (rank := ranked(row["rank"])) and rank <= KEPT]
    top.sort(key=lambda pair: pair[0])
    return with_bitcoin(_coin(row, rank) for rank, row in top)


def _coin(row: dict[str, Any], rank: int) -> Coin | None:
    quote = row["quotes"]["USD"]
    price = amount(quote["price"])
    if not price:
        return None
    return Coin(
        symbol=clean(row["symbol"], 40).upper(),
        name=clean(row["name"], NAME),
        price_usd=price,
        change_1h_percent=figure(quote.get("percent_change_1h")),
        change_24h_percent=figure(quote.get("percent_change_24h")),
        change_7d_percent=figure(quote.get("percent_change_7d")),
        market_cap_usd=amount(quote.get("market_cap")),
        volume_24h_usd=amount(quote.get("volume_24h")),
        rank=rank,
        image=None,
        high_24h=None,
        low_24h=None,
        updated_at=optional(from_iso, row.get("last_updated")),
    )


TICKERS = Source(
    "CoinPaprika.tickers",
    request,
    parse,
    licence=LICENCE,
    hosts=COINPAPRIKA,
    fresh_s=300,
    keep_s=86400,
    timeout_s=12,
    max_bytes=8 * MIB,
    newest=newest,
    least=80,
    untrusted=True,
    gauge=GAUGE,
)
