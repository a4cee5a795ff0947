"""Kalshi events with their markets (trade API v2, JSON, no key; display only).

https://docs.kalshi.com/api-reference/events/get-events
"""

from collections import Counter
from typing import Any
from urllib.parse import quote

from tools.shared.numbers import number, within
from tools.shared.optional import optional
from tools.shared.text import clean
from tools.shared.times import from_iso
from tools.sources.hosts import other
from tools.sources.polymarket import Bet, newest
from toolserver.errors import SourceChanged
from toolserver.upstream.source import MIB, Get, Keys, Licence, Source

HOSTS = ("api.elections.kalshi.com", "external-api.kalshi.com")
LICENCE = Licence("no", "Kalshi", "https://kalshi.com/developer-agreement")


def request(query: None, keys: Keys) -> list[Get]:
    params = {"status": "open", "limit": "200", "with_nested_markets": "true"}
    return [Get(f"https://{host}/trade-api/v2/events", params=params) for host in HOSTS]


def parse(body: Any, query: None) -> tuple[Bet, ...]:
    """Every active market that has a price and a volume, in the order of the events."""
    active, bets = 0, []
    for event in body["events"]:
        titles = Counter(market.get("title") for market in event.get("markets") or [])
        markets = [market for market in event.get("markets") or [] if market["status"] == "active"]
        active += len(markets)
        bets += [bet for market in markets if (bet := _bet(event, market, titles))]
    if active and not bets:
        raise SourceChanged("no market has a price and a volume")
    return tuple(bets)


def _bet(event: dict[str, Any], market: dict[str, Any], titles: Counter[Any]) -> Bet | None:
    price = optional(_price, market.get("last_price_dollars"))
    contracts = optional(number, market.get("volume_24h_fp"))
    if price is None or contracts is None:
        return None
    before = optional(_price, market.get("previous_price_dollars"))  # a day ago; 0 when there was no trade
    return Bet(
        id=clean(str(market["ticker"]), 80),
        question=_question(event, market, titles),
        outcomes=("Yes", "No"),
        prices=(price, 1 - price),
        volume_24h_usd=within(contracts, 0, 1e12) * price,
        source="Kalshi",
        url=f"https://kalshi.com/markets/{quote(str(event['event_ticker']), safe='')}",
        liquidity_usd=optional(number, market.get("liquidity_dollars")) or None,  # always 0 since it was retired
        change_24h=price - before if before else None,
        ends_at=optional(from_iso, market.get("close_time")),
        created_at=optional(from_iso, market.get("created_time")),
        updated_at=optional(from_iso, market.get("updated_time")),
    )


def _price(value: Any) -> float:
    return within(number(value), 0, 1)


def _question(event: dict[str, Any], market: dict[str, Any], titles: Counter[Any]) -> str:
    """The market's title; where several of the event share it, the event's title and what "yes" stands for."""
    title = market.get("title")
    if title and titles[title] == 1:
        return clean(title)
    return clean(f"{event['title']} – {market['yes_sub_title']}")


EVENTS = Source(
    "Kalshi.open_events",
    request,
    parse,
    licence=LICENCE,
    hosts=other("kalshi"),
    fresh_s=120,
    keep_s=21600,
    timeout_s=12,
    max_bytes=12 * MIB,
    newest=newest,
    least=20,
    untrusted=True,
)
