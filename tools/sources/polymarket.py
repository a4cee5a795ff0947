"""Polymarket markets (Gamma API, JSON, no key).

https://docs.polymarket.com/developers/gamma-markets-api/overview
"""

import json
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.shared.numbers import number, within
from tools.shared.optional import optional
from tools.shared.text import NAME, clean
from tools.shared.times import from_iso
from tools.sources.hosts import other
from toolserver.errors import SourceChanged
from toolserver.upstream.source import MIB, Get, Keys, Licence, Source

MARKETS_URL = "https://gamma-api.polymarket.com/markets"
LICENCE = Licence("unclear", "Polymarket", "https://polymarket.com/tos")


class Bet(NamedTuple):
    """One open market. `prices` stand beside `outcomes`, 0…1, empty when there are none yet; changes are of the first.

    `updated_at` is when the provider wrote the row: Polymarket writes all rows at once, so it is no sign of a trade.
    """

    id: str
    question: str
    outcomes: tuple[str, ...]
    prices: tuple[float, ...]
    volume_24h_usd: float
    source: str
    url: str | None = None
    liquidity_usd: float | None = None
    change_1h: float | None = None
    change_24h: float | None = None
    ends_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


def request(query: None, keys: Keys) -> Get:
    return Get(
        MARKETS_URL,
        params={"closed": "false", "active": "true", "order": "volume24hr", "ascending": "false", "limit": "100"},
    )


def parse(body: Any, query: None) -> tuple[Bet, ...]:
    """Every market that is not closed, in the order of the answer."""
    if not isinstance(body, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    bets = tuple(_bet(market) for market in body if not market.get("closed"))
    if bets and not any(bet.prices for bet in bets):
        raise SourceChanged("no market has prices")
    return bets


def _bet(market: dict[str, Any]) -> Bet:
    outcomes = optional(_outcomes, market.get("outcomes")) or ()
    prices = optional(_prices, market.get("outcomePrices")) or ()
    return Bet(
        id=clean(str(market["id"]), 60),
        question=clean(market["question"]),
        outcomes=outcomes,
        prices=prices if len(prices) == len(outcomes) else (),
        volume_24h_usd=within(number(market["volume24hr"]), 0, 1e12),
        source="Polymarket",
        url=optional(_url, market),
        liquidity_usd=optional(number, market.get("liquidityNum")),
        change_1h=optional(_change, market.get("oneHourPriceChange")),
        change_24h=optional(_change, market.get("oneDayPriceChange")),
        ends_at=optional(from_iso, market.get("endDate")),
        created_at=optional(from_iso, market.get("createdAt")),
        updated_at=from_iso(market["updatedAt"]),
    )


def _inner(value: Any) -> list[Any]:
    """The list that is written as JSON inside a string."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, list):
        raise ValueError(f"not a list: {found!r:.40}")
    return found


def _outcomes(value: Any) -> tuple[str, ...]:
    return tuple(clean(str(name), NAME) for name in _inner(value))


def _prices(value: Any) -> tuple[float, ...]:
    return tuple(within(number(price), 0, 1) for price in _inner(value))


def _change(value: Any) -> float:
    return within(number(value), -1, 1)


def _url(market: dict[str, Any]) -> str:
    event, slug = market["events"][0]["slug"], market["slug"]
    return f"https://polymarket.com/event/{quote(event, safe='')}/{quote(slug, safe='')}"


def newest(bets: tuple[Bet, ...]) -> datetime | None:
    return max((bet.updated_at for bet in bets if bet.updated_at), default=None)


MARKETS = Source(
    "Polymarket.markets_by_volume",
    request,
    parse,
    licence=LICENCE,
    hosts=other("polymarket"),
    fresh_s=60,
    keep_s=21600,
    timeout_s=8,
    max_bytes=6 * MIB,
    newest=newest,
    newest_max_s=3600,
    least=20,
    untrusted=True,
)
