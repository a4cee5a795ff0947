"""Simulate the headlines: 400 a day over all feeds, some posted twice, some without a date.

The template of a headline determines the tickers it names and the score of its words.
"""

import math
from typing import NamedTuple

from toolserver.world.model import World

SLOT_S = 216.0  # one headline in each: 400 a day
LISTED_S = 36 * 3600.0  # older ones are in no feed
CROSSED, UNDATED = 0.1, 0.05
PRESS_S = 2 * 86400.0  # the central bank publishes that rarely
BOARDS = ("CryptoCurrency", "wallstreetbets", "stocks", "investing")
HOSTS = {
    "coindesk": "www.coindesk.com",
    "cointelegraph": "cointelegraph.com",
    "decrypt": "decrypt.co",
    "cnbc": "www.cnbc.com",
    "marketwatch": "www.marketwatch.com",
    "yahoo_finance": "finance.yahoo.com",
    "bbc": "www.bbc.com",
    "federal_reserve": "www.federalreserve.gov",
}
FEEDS = (*BOARDS, *(feed for feed in HOSTS if feed != "federal_reserve"))

NAMES = {
    "BTC": "Bitcoin", "ETH": "Ethereum", "SOL": "Solana", "BNB": "BNB", "XRP": "$XRP", "ADA": "Cardano",
    "DOGE": "Dogecoin", "DOT": "Polkadot", "LINK": "Chainlink", "AVAX": "AVAX", "POL": "MATIC", "NEAR": "NEAR Protocol",
    "SPY": "S&P 500", "QQQ": "QQQ", "NVDA": "Nvidia", "AAPL": "AAPL", "MSFT": "Microsoft", "GOOGL": "Google",
    "AMZN": "$AMZN", "META": "Meta Platforms", "TSLA": "Tesla", "AMD": "AMD", "COIN": "Coinbase",
    "MSTR": "MicroStrategy", "MARA": "MARA Holdings", "RIOT": "$RIOT",
}  # fmt: skip
FAVOURITES = ("BTC", "BTC", "BTC", "ETH", "ETH", "NVDA", "TSLA", *NAMES)
TEMPLATES = [  # text, score of its words
    ("{} surges as inflow tops {n} million", 1.0),
    ("{} rallied {n} points on its strongest week", 1.0),
    ("{} denies hack rumours at desk {n}", 1.0),
    ("{} plunges after exploit number {n}", -1.0),
    ("{} slides {n} points despite record-high revenue", -1.0),
    ("{} gains {n} points but investors fear a recession", -1 / 3),
    ("{} beats forecast {n} and wins approval before a lawsuit", 0.5),
    ("What holders of {} think of plan {n}", 0.0),
    ("{} schedules call {n}", 0.0),
]
DECOYS = [  # words that are not tickers here
    "Missing LINK found NEAR old bridge {n}",
    "The META question about DOT com, part {n}",
    "Flip a COIN {n} times and see",
    "A RIOT of colour: SOL and ADA paint house {n}",
    "Council plans new park, page {n}",
]


class SimHeadline(NamedTuple):
    """One item of a feed. `origin` is the number of its story; a copy has the number of the original."""

    origin: int
    feed: str
    at: float
    title: str
    url: str
    symbols: tuple[str, ...]
    score: float
    dated: bool
    copy: bool


def headlines(world: World) -> list[SimHeadline]:
    """Return everything that is in a feed now, newest first. With `headlines.quiet` pinned to 1 no ticker is named.

    Injected events of the kind `headline` hold `title`, `feed`, and optionally `symbols`, `score` and `url`.
    """
    first, last = math.floor((world.now - LISTED_S) / SLOT_S), math.floor(world.now / SLOT_S)
    items = [item for slot in range(first, last + 1) for item in _told(world, slot)]
    items += [_press(world, n) for n in range(math.floor(world.now / PRESS_S) - 6, math.floor(world.now / PRESS_S) + 1)]
    items += [_injected(event) for event in world.injected("headline", world.now - LISTED_S)]
    return sorted((item for item in items if item.at <= world.now), key=lambda item: item.at, reverse=True)


def _told(world: World, slot: int) -> list[SimHeadline]:
    feed = world.pick("headline.feed", slot, FEEDS)
    title, symbols, score = _title(world, slot)
    at = math.floor((slot + world.u("headline.at", slot)) * SLOT_S)
    dated = world.u("headline.dated", slot) >= UNDATED
    one = SimHeadline(slot, feed, at, title, url(feed, slot), symbols, score, dated, copy=False)
    if not dated or world.u("headline.crossed", slot) >= CROSSED:
        return [one]
    return [one, _copy(world, one)]


def _copy(world: World, one: SimHeadline) -> SimHeadline:
    """Return a copy in another feed a while later: at the same address, or under the same title."""
    feed = world.pick("headline.second", one.origin, [f for f in FEEDS if f != one.feed])
    at = one.at + math.floor(world.between("headline.later", one.origin, 60, 1800))
    if world.u("headline.linked", one.origin) < 0.5:
        address = one.url.replace("://www.", "://") + "?utm_source=rss&utm_medium=feed#top"
        return one._replace(feed=feed, at=at, url=address, title=f"Read: {one.title}", copy=True)
    return one._replace(feed=feed, at=at, url=url(feed, one.origin), title=f"{one.title} - Reuters", copy=True)


def _title(world: World, slot: int) -> tuple[str, tuple[str, ...], float]:
    n = slot % 1_000_000  # no two items have the same title
    if world.pinned("headlines.quiet") == 1 or world.u("headline.decoy", slot) < 0.3:
        return world.pick("headline.what", slot, DECOYS).format(n=n), (), 0.0
    text, score = world.pick("headline.what", slot, TEMPLATES)
    symbols = [world.pick("headline.ticker", slot, FAVOURITES)]
    if world.u("headline.pair", slot) < 0.15:
        symbols = sorted({*symbols, world.pick("headline.other", slot, FAVOURITES)})
    return text.format(" and ".join(NAMES[symbol] for symbol in symbols), n=n), tuple(symbols), score


def _press(world: World, number: int) -> SimHeadline:
    at = math.floor((number + world.u("press.at", number)) * PRESS_S)
    title = f"Agencies issue joint statement number {number}"
    return SimHeadline(
        -number, "federal_reserve", at, title, url("federal_reserve", number), (), 0.0, dated=True, copy=False
    )


def _injected(event: dict[str, object]) -> SimHeadline:
    at, feed = float(event["at"]), str(event.get("feed", "coindesk"))  # type: ignore[arg-type]
    symbols = tuple(str(symbol) for symbol in event.get("symbols", ()))  # type: ignore[attr-defined]
    score = float(event.get("score", 0))  # type: ignore[arg-type]
    address = str(event.get("url", url(feed, int(at))))
    return SimHeadline(-int(at), feed, at, str(event["title"]), address, symbols, score, dated=True, copy=False)


def url(feed: str, number: int) -> str:
    """Return the link of an item."""
    if feed in BOARDS:
        return f"https://www.reddit.com/r/{feed}/comments/{number:x}/a_post/"
    return f"https://{HOSTS[feed]}/stories/{number}"


def list_headlines(world: World, feed: str, count: int) -> list[SimHeadline]:
    """Return the newest items of one feed."""
    return [item for item in headlines(world) if item.feed == feed][:count]
