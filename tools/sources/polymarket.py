"""Polymarket markets (Gamma API, JSON, no key).

https://docs.polymarket.com/developers/gamma-markets-api/overview
"""

import json
from typing import Any
from urllib.parse import quote

from tools.parsing.numbers import number, within
from tools.parsing.optional import optional
from tools.parsing.prediction_markets import Bet, newest_bet
from tools.parsing.text import NAME, clean
from tools.parsing.times import from_iso
from tools.sources.hosts import HOUR, other
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

MARKETS_URL = "https://gamma-api.polymarket.com/markets"
LICENCE = Licence("unclear", "Polymarket", "https://polymarket.com/tos")


def parse(body: Any, query: None) -> tuple[Bet, ...]:
    """Every market that is not closed, in the order of the answer."""
    if not isinstance(body, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    bets = read_rows(body, lambda market: None if market.get("closed") else _bet(market))
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


MARKETS = Source(
    "Polymarket.markets_by_volume",
    Get(
        MARKETS_URL,
        params={"closed": "false", "active": "true", "order": "volume24hr", "ascending": "false", "limit": "100"},
    ),
    parse,
    licence=LICENCE,
    hosts=other("polymarket"),
    fresh_s=60,
    keep_s=6 * HOUR,
    max_bytes=6 * MIB,
    newest=newest_bet,
    newest_max_s=HOUR,
    least=20,
    untrusted=True,
)
