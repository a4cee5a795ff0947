"""Read Polymarket markets (Gamma API, JSON, no key): a page of the keyset list, or the bare list that it replaces.

The bare list announces its end (`Deprecation`, `Sunset`) and is read only where the keyset
list does not answer. https://docs.polymarket.com/developers/gamma-markets-api/overview
"""

import json
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from tools.parsing.fields import NAME, clean, from_iso, number, optional, within
from tools.parsing.prediction_markets import Bet, newest_bet
from tools.sources.hosts import HOUR, other
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

FORMER_URL = "https://gamma-api.polymarket.com/markets"
KEYSET_URL = f"{FORMER_URL}/keyset"
BY_VOLUME = {"closed": "false", "active": "true", "order": "volume24hr", "ascending": "false", "limit": "100"}
SILENT = 0.5  # of the rows may lack a volume; an upstream that has renamed the field lacks all
UNSORTED, FEW = 0.25, 20  # of the rows may rank above a smaller one, where there are enough to judge the order
LICENCE = Licence("unclear", "Polymarket", "https://polymarket.com/tos")


def parse(body: Any, query: None) -> tuple[Bet, ...]:
    """Return every open market with a volume, in the order of the answer, the most traded first.

    Raises:
        SourceChanged: the answer is not a list, has hardly a volume or no price, or has another order than requested:
            its first hundred are then not the most traded ones.
    """
    listed = body.get("markets") if isinstance(body, dict) else body
    if not isinstance(listed, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    still_open = [market for market in listed if isinstance(market, dict) and market.get("closed") is not True]
    silent = sum(market.get("volume24hr") is None for market in still_open)
    if silent > SILENT * len(still_open):
        raise SourceChanged(f"{silent} of {len(still_open)} open markets lack a volume")
    bets = read_rows(listed, lambda market: _bet(market) if _counts(market) else None)
    if bets and not any(bet.prices for bet in bets):
        raise SourceChanged("no market has prices")
    rises = sum(earlier.volume_24h_usd < later.volume_24h_usd for earlier, later in pairwise(bets))
    if len(bets) >= FEW and rises > UNSORTED * len(bets):
        raise SourceChanged("markets are not ordered by volume")
    return bets


def _counts(market: dict[str, Any]) -> bool:
    """Return True if a market is open and states its volume: some that have not been traded yet lack it."""
    return not market.get("closed") and market.get("volume24hr") is not None


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
    """Return the list that is written as JSON inside a string."""
    values = json.loads(value) if isinstance(value, str) else value
    if not isinstance(values, list):
        raise ValueError(f"not a list: {values!r:.40}")
    return values


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
    (Get(KEYSET_URL, params=BY_VOLUME), Get(FORMER_URL, params=BY_VOLUME)),
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
