"""Read the largest coins by market value from CoinGecko (JSON, no key; a demo key raises the allowance).

https://docs.coingecko.com/v3.0.1/reference/coins-markets
"""

from typing import Any

from tools.parsing.coins import GAUGE, Coin, amount, figure, newest, quoted, read_rank, with_bitcoin
from tools.parsing.fields import NAME, clean, from_iso, optional, web_url
from tools.sources.hosts import COINGECKO, MINUTE
from toolserver import Get, Keys, Licence, Source, SourceChanged, SourceLimited, read_rows

MARKETS = "https://api.coingecko.com/api/v3/coins/markets"
LICENCE = Licence("no", "Powered by CoinGecko", "https://www.coingecko.com/en/api_terms")


def request(query: int | None, keys: Keys) -> Get:
    """Ask for so many of the largest coins, 250 at most, or for 100."""
    key = keys.get("COINGECKO_API_KEY")
    return Get(
        MARKETS,
        params={
            "vs_currency": "usd",
            "order": "market_cap_desc",
            "per_page": str(query or 100),
            "page": "1",
            "sparkline": "false",
            "price_change_percentage": "1h,24h,7d",
        },
        headers={"x-cg-demo-api-key": key} if key else {},
    )


def parse(body: Any, query: int | None) -> tuple[Coin, ...]:
    """Return every row with a price, in the order of the list. An object in place of the list is an error message."""
    if isinstance(body, dict):
        raise _refusal(body)
    return with_bitcoin(read_rows(body, _coin))


def _refusal(body: dict[str, Any]) -> SourceChanged | SourceLimited:
    status = body.get("status")
    code = status.get("error_code") if isinstance(status, dict) else None
    return SourceLimited("quota") if code == 429 else SourceChanged(f"an object, error {code!r:.20}")


def _coin(row: dict[str, Any]) -> Coin | None:
    price = quoted(row["current_price"])
    if not price:
        return None
    day = figure(row.get("price_change_percentage_24h_in_currency"))
    return Coin(
        symbol=clean(row["symbol"], 40).upper(),
        name=clean(row["name"], NAME),
        price_usd=price,
        change_1h_percent=figure(row.get("price_change_percentage_1h_in_currency")),
        change_24h_percent=figure(row.get("price_change_percentage_24h")) if day is None else day,
        change_7d_percent=figure(row.get("price_change_percentage_7d_in_currency")),
        market_cap_usd=amount(row.get("market_cap")),
        volume_24h_usd=amount(row.get("total_volume")),
        rank=read_rank(row.get("market_cap_rank")),
        image=web_url(row.get("image")),
        high_24h=amount(row.get("high_24h")),
        low_24h=amount(row.get("low_24h")),
        updated_at=optional(from_iso, row.get("last_updated")),
        slug=clean(row.get("id") or "", 80),
    )


COINS_MARKETS = Source(
    "CoinGecko.markets",
    request,
    parse,
    licence=LICENCE,
    hosts=COINGECKO,
    fresh_s=90,
    newest=newest,
    newest_max_s=15 * MINUTE,
    least=80,
    untrusted=True,
    gauge=GAUGE,
)
