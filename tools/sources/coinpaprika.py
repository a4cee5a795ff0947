"""Read every coin listed by CoinPaprika, of which the largest are kept (JSON, no key, non-commercial).

https://api.coinpaprika.com/#tag/Tickers
"""

from typing import Any

from tools.parsing.coins import GAUGE, Coin, amount, figure, newest, quoted, with_bitcoin
from tools.parsing.fields import NAME, clean, from_iso, number, optional
from tools.sources.hosts import COINPAPRIKA, HOUR
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

TICKERS_URL = "https://api.coinpaprika.com/v1/tickers"
LICENCE = Licence("non_commercial", "CoinPaprika", "https://coinpaprika.com/api/")
KEPT = 100


def parse(body: Any, query: int | None) -> tuple[Coin, ...]:
    """Return the rows of rank 1 to the query (or 100) with a price, by rank; rank 0 marks coins no longer traded."""
    if isinstance(body, dict):
        raise SourceChanged(f"an object: {clean(str(body.get('error')), 60)}")
    kept = query or KEPT
    return with_bitcoin(sorted(read_rows(body, lambda row: _coin(row, kept)), key=lambda coin: coin.rank or kept))


def _coin(row: dict[str, Any], kept: int) -> Coin | None:
    rank = number(row["rank"])
    if not 1 <= rank <= kept:
        return None
    quote = row["quotes"]["USD"]
    price = quoted(quote["price"])
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
        rank=int(rank),
        image=None,
        high_24h=None,
        low_24h=None,
        updated_at=optional(from_iso, row.get("last_updated")),
        slug=clean(row.get("id") or "", 80).partition("-")[2],
    )


TICKERS = Source(
    "CoinPaprika.tickers",
    Get(TICKERS_URL),
    parse,
    licence=LICENCE,
    hosts=COINPAPRIKA,
    fresh_s=300,
    newest_max_s=HOUR,
    timeout_s=12,
    max_bytes=8 * MIB,
    newest=newest,
    least=80,
    untrusted=True,
    gauge=GAUGE,
)
