"""Read Kalshi events with their markets (trade API v2, JSON, no key; display only).

There are thousands of open events, and no order by trade. One page is read, the first in Kalshi's own order. Its most
traded markets need not be the most traded at Kalshi, and answers say so.

https://docs.kalshi.com/api-reference/events/get-events
"""

from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.parsing.fields import clean, from_iso, number, optional, within
from tools.parsing.prediction_markets import Bet, newest_bet
from tools.sources.hosts import HOUR, other
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

HOSTS = ("api.elections.kalshi.com", "external-api.kalshi.com")
OPEN = {"status": "open", "limit": "200", "with_nested_markets": "true"}
LICENCE = Licence("no", "Kalshi", "https://kalshi.com/developer-agreement")


class OpenEvents(NamedTuple):
    """The markets of the events of one page; `has_more` where it is not the last one."""

    bets: tuple[Bet, ...]
    events: int
    has_more: bool


def parse(body: Any, query: None) -> OpenEvents:
    """Return every active market that has a price and a volume, in the order of the events."""
    events = body["events"]
    listed = [row for event in read_rows(events, _markets) for row in event]
    bets = read_rows(listed, lambda row: _bet(*row))
    if not bets and any(market["status"] == "active" for _, market, _ in listed):
        raise SourceChanged("no market has a price and a volume")
    return OpenEvents(bets, len(events), bool(body.get("cursor")))


def covers(page: OpenEvents) -> str | None:
    """Describe which part of the open events a page has; None if it has all of them."""
    if not page.has_more:
        return None
    return f"the first {page.events} open events in Kalshi's own order, not all: others may be traded more"


def _markets(event: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any], "Counter[Any]"]]:
    """Return the markets of an event, each with the event and how often its title occurs there."""
    markets = event.get("markets") or []
    titles = Counter(market.get("title") for market in markets if isinstance(market, dict))
    return [(event, market, titles) for market in markets]


def _bet(event: dict[str, Any], market: dict[str, Any], titles: Counter[Any]) -> Bet | None:
    if market["status"] != "active" or not market.get("last_price_dollars") or not market.get("volume_24h_fp"):
        return None
    price, contracts = _price(market["last_price_dollars"]), number(market["volume_24h_fp"])
    before = optional(_price, market.get("previous_price_dollars"))  # a day ago; 0 when there was no trade
    return Bet(
        id=clean(str(market["ticker"]), 80),
        question=_question(event, market, titles),
        outcomes=("Yes", "No"),
        prices=(price, 1 - price),
        volume_24h_usd=within(contracts, 0, 1e12) * price,
        source="Kalshi",
        url=f"https://kalshi.com/markets/{quote(str(event['event_ticker']), safe='')}",
        liquidity_usd=optional(number, market.get("liquidity_dollars")) or None,  # always 0 since the field was retired
        change_24h=price - before if before else None,
        ends_at=optional(from_iso, market.get("close_time")),
        created_at=optional(from_iso, market.get("created_time")),
        updated_at=optional(from_iso, market.get("updated_time")),
    )


def _price(value: Any) -> float:
    return within(number(value), 0, 1)


def _question(event: dict[str, Any], market: dict[str, Any], titles: Counter[Any]) -> str:
    """Return the market's title; where several share it, the event's title and the meaning of "yes"."""
    title = market.get("title")
    if title and titles[title] == 1:
        return clean(title)
    return clean(f"{event['title']} – {market['yes_sub_title']}")


EVENTS = Source(
    "Kalshi.open_events",
    tuple(Get(f"https://{host}/trade-api/v2/events", params=OPEN) for host in HOSTS),
    parse,
    licence=LICENCE,
    hosts=other("kalshi"),
    fresh_s=120,
    keep_s=6 * HOUR,
    timeout_s=12,
    max_bytes=12 * MIB,
    newest=lambda page: newest_bet(page.bets),
    moves=lambda page: sum(bet.volume_24h_usd for bet in page.bets),
    least=20,
    covers=covers,
    untrusted=True,
)
