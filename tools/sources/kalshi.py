"""Read Kalshi events with their markets (trade API v2, JSON, no key; display only).

There are thousands of open events, and no order by trade. One page is read, the first in
Kalshi's own order. Its most traded markets need not be the most traded at Kalshi, and answers
say so.

https://docs.kalshi.com/api-reference/events/get-events
"""

from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.parsing.fields import clean, from_iso, number, optional, within
from tools.parsing.prediction_markets import Bet, newest_bet
from tools.sources.hosts import HOUR, other
from toolserver import MIB, Get, Licence, Meaning, Source, SourceChanged, read_rows

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
    last, contracts = _price(market["last_price_dollars"]), number(market["volume_24h_fp"])
    book, book_before = Book.of(market, "yes"), Book.of(market, "previous_yes")
    price = probability(last, book)
    traded_before = optional(_price, market.get("previous_price_dollars"))  # a day ago; 0 when there was no trade
    before = book_before.middle if book and book_before else traded_before
    now = book.middle if book and book_before else price
    return Bet(
        id=clean(str(market["ticker"]), 80),
        question=_question(event, market, titles),
        outcomes=("Yes", "No"),
        prices=(price, 1 - price),
        volume_24h_usd=within(contracts, 0, 1e12) * last,
        source="Kalshi",
        url=f"https://kalshi.com/markets/{quote(str(event['event_ticker']), safe='')}",
        liquidity_usd=optional(number, market.get("liquidity_dollars")) or None,  # always 0 since the field was retired
        change_24h=now - before if before else None,
        ends_at=optional(from_iso, market.get("close_time")),
        created_at=optional(from_iso, market.get("created_time")),
        updated_at=optional(from_iso, market.get("updated_time")),
    )


class Book(NamedTuple):
    """The best bid and ask for "yes", both of them there."""

    bid: float
    ask: float

    @classmethod
    def of(cls, market: dict[str, Any], name: str) -> "Book | None":
        """Return the book whose members begin with a name, or None if a side is missing or empty."""
        bid, ask = (optional(_price, market.get(f"{name}_{side}_dollars")) for side in ("bid", "ask"))
        return cls(bid, ask) if bid and ask and bid <= ask < 1 else None

    @property
    def middle(self) -> float:
        return (self.bid + self.ask) / 2


def probability(last: float, book: Book | None) -> float:
    """Return the last trade, or the middle of the book if that trade lies outside it: nobody would trade there now."""
    return last if book is None or book.bid <= last <= book.ask else book.middle


PREDICTIONS = (
    Meaning(
        "predictions.yes_percent",
        "Kalshi publishes bid, ask and last trade, and no probability. Ours is the last trade, or the middle of bid "
        "and ask if the trade lies outside them. Markets below 0.5 % or above 99.5 % are left out as decided",
        decide=lambda row: round(probability(row[0], Book(row[1], row[2])), 4),
        rows=(
            ((0.9, 0.1, 0.12), 0.11),
            ((0.12, 0.1, 0.12), 0.12),
            ((0.1, 0.1, 0.12), 0.1),
            ((0.09, 0.1, 0.12), 0.11),
        ),
    ),
    Meaning(
        "predictions.change_24h_points",
        "Of Kalshi: middle of bid and ask now less the middle of those a day ago; where they are not published, the "
        "price less the last trade of a day ago",
    ),
    Meaning(
        "predictions.volume_usd",
        "Kalshi counts contracts of 1 USD; ours are contracts times the last price. Polymarket counts dollars in "
        "another way: the two do not compare",
    ),
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
