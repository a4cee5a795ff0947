"""Read the 100 largest coins by market value from Coinlore (JSON, no key; asks for at most one request a second).

https://www.coinlore.com/cryptocurrency-data-api
"""

from datetime import datetime
from typing import Any

from tools.parsing.coins import GAUGE, Coin, amount, figure, newest, quoted, read_rank, with_bitcoin
from tools.parsing.fields import NAME, clean, from_epoch
from tools.sources.hosts import COINLORE, MINUTE
from toolserver import Get, Licence, Source, read_rows

TICKERS_URL = "https://api.coinlore.net/api/tickers/"
LICENCE = Licence("unclear", "CoinLore", "https://www.coinlore.com/cryptocurrency-data-api")


def parse(body: Any, query: None) -> tuple[Coin, ...]:
    """Return every row with a price, in the order of the list; all rows are as old as the document."""
    made_at = from_epoch(body["info"]["time"])
    return with_bitcoin(read_rows(body["data"], lambda row: _coin(row, made_at)))


def _coin(row: dict[str, Any], made_at: datetime) -> Coin | None:
    price = quoted(row["price_usd"])
    if not price:
        return None
    return Coin(
        symbol=clean(row["symbol"], 40).upper(),
        name=clean(row["name"], NAME),
        price_usd=price,
        change_1h_percent=figure(row.get("percent_change_1h")),
        change_24h_percent=figure(row.get("percent_change_24h")),
        change_7d_percent=figure(row.get("percent_change_7d")),
        market_cap_usd=amount(row.get("market_cap_usd")),
        volume_24h_usd=amount(row.get("volume24")),
        rank=read_rank(row.get("rank")),
        image=None,
        high_24h=None,
        low_24h=None,
        updated_at=made_at,
        slug=clean(row.get("nameid") or "", 80),
    )


TICKERS = Source(
    "Coinlore.tickers",
    Get(TICKERS_URL, params={"start": "0", "limit": "100"}),
    parse,
    licence=LICENCE,
    hosts=COINLORE,
    fresh_s=60,
    newest=newest,
    newest_max_s=30 * MINUTE,
    least=80,
    untrusted=True,
    gauge=GAUGE,
)
