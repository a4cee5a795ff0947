"""Coinlore: the 100 largest coins by market value (JSON, no key, about one request a second asked for).

https://www.coinlore.com/cryptocurrency-data-api
"""

from datetime import datetime
from typing import Any

from tools.shared.coins import GAUGE, Coin, amount, figure, newest, ranked, with_bitcoin
from tools.shared.text import NAME, clean
from tools.shared.times import from_epoch
from tools.sources.hosts import COINLORE
from toolserver.upstream.source import Get, Keys, Licence, Source

TICKERS_URL = "https://api.coinlore.net/api/tickers/"
LICENCE = Licence("unclear", "CoinLore", "https://www.coinlore.com/cryptocurrency-data-api")


def request(query: None, keys: Keys) -> Get:
    return Get(TICKERS_URL, params={"start": "0", "limit": "100"})


def parse(body: Any, query: None) -> tuple[Coin, ...]:
    """Every row with a price, in the order of the list; all are as old as the document."""
    made_at = from_epoch(body["info"]["time"])
    return with_bitcoin(_coin(row, made_at) for row in body["data"])


def _coin(row: dict[str, Any], made_at: datetime) -> Coin | None:
    price = amount(row["price_usd"])
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
        rank=ranked(row.get("rank")),
        image=None,
        high_24h=None,
        low_24h=None,
        updated_at=made_at,
    )


TICKERS = Source(
    "Coinlore.tickers",
    request,
    parse,
    licence=LICENCE,
    hosts=COINLORE,
    fresh_s=60,
    keep_s=86400,
    timeout_s=8,
    newest=newest,
    newest_max_s=1800,
    least=80,
    untrusted=True,
    gauge=GAUGE,
)
