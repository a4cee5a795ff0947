"""Collect the headlines of a day from many feeds: read in parallel, without undated ones, and each story once."""

import functools
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anyio

from tools.parsing.stories import Story
from tools.sources import gdelt, news_feeds, reddit
from tools.sources.gdelt import Article
from tools.sources.hackernews_algolia import STORIES_24H, Recent
from tools.sources.news_feeds import GOOGLE_NEWS
from toolserver import (
    Fallback,
    FallbackReader,
    Source,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceNote,
    SourceUnusable,
    ToolContext,
)

DAY = timedelta(hours=24)
PATIENCE_S = 8.0  # for all feeds together; slower feeds answer the next call
NEWS: dict[str, tuple[Source[Any, Any], ...]] = {
    "hacker_news": (STORIES_24H,),
    "reddit": reddit.HOT,
    "coindesk": (news_feeds.COINDESK,),
    "cointelegraph": (news_feeds.COINTELEGRAPH,),
    "decrypt": (news_feeds.DECRYPT,),
    "cnbc": (news_feeds.CNBC,),
    "marketwatch": (news_feeds.MARKETWATCH,),
    "yahoo_finance": (news_feeds.YAHOO_FINANCE,),
    "bbc": (news_feeds.BBC_BUSINESS,),
    "federal_reserve": (news_feeds.FEDERAL_RESERVE,),
    "google_news": (GOOGLE_NEWS,),
}
"""The feeds by the name of who publishes them."""
FINANCE = frozenset({"coindesk", "cointelegraph", "decrypt", "cnbc", "marketwatch", "yahoo_finance"})
LEAST_FEEDS = 3  # with fewer, the articles that GDELT found are read too, each publisher of which counts as a feed
SOURCES = (*(source for sources in NEWS.values() for source in sources), gdelt.ARTICLES)
PUBLISHERS = frozenset(
    "coindesk|cointelegraph|decrypt|cnbc|marketwatch|yahoo finance|bbc|bbc news|federal reserve|reuters|bloomberg"
    "|bloomberg.com|forbes|the wall street journal|wsj|financial times|ap news|barron's|the new york times".split("|")
)

_LAST_PART = re.compile(r"\s+[-–|]\s+([^-–|]{1,60})$")


class Item(NamedTuple):
    """A headline and its publisher. `said` is the title without the publisher's name at its end."""

    publisher: str
    title: str
    said: str
    url: str | None
    at: datetime


class Collected(NamedTuple):
    """The items of the feeds, how many feeds answered, which did not, and how many of those are excluded."""

    items: tuple[Item, ...]
    answered: int
    missing: tuple[str, ...]
    barred: int


_GDELT = "gdelt"


class _Round:
    """One round of all feeds, for one fallback: the items found, and the feeds that failed."""

    def __init__(self, ctx: ToolContext, reading: FallbackReader) -> None:
        self._ctx, self._reading = ctx, reading
        self.found: dict[tuple[str, str], tuple[Item, ...]] = {}
        self.errors: dict[Source[Any, Any], SourceError] = {}

    async def ask(self, publisher: str, source: Source[Any, Any], query: Any = None) -> None:
        """Read a feed, or note the reason why it failed."""
        try:
            with anyio.fail_after(PATIENCE_S):
                self.take(publisher, source, await self._reading.read(source, query))
        except TimeoutError:
            self.miss(source, SourceDown(f"no answer in {PATIENCE_S:g} s", word="timeout"))
        except SourceError as error:
            self.miss(source, error)

    def take(self, publisher: str, source: Source[Any, Any], value: Any) -> None:
        self.found[publisher, source.name] = items_of(publisher, value)

    def miss(self, source: Source[Any, Any], error: SourceError) -> None:
        if not isinstance(error, SourceUnusable):
            self.errors[source] = error

    def collected(self, pairs: Sequence[tuple[str, Source[Any, Any]]]) -> Collected:
        """Return what was collected. Raises the first SourceError when no feed answered."""
        for source, error in self.errors.items():
            self._reading.notes.append(SourceNote(source, self._reading.section, "error", reason=error.reason))
        if not self.found:
            self._ctx.notes.add(self._reading.notes)  # otherwise a failed fallback would list only one source
            source, error = next(iter(self.errors.items()), (STORIES_24H, SourceDown("no feed")))
            self._reading.asked = source
            raise error
        in_order = ((publisher, source.name) for publisher, source in pairs)  # not the order of arrival
        items = tuple(item for key in in_order for item in self.found.get(key, ()))
        barred = sum(isinstance(error, SourceExcluded) for error in self.errors.values())
        return Collected(items, self.count_feeds(), tuple(s.name for _, s in pairs if s in self.errors), barred)

    def count_feeds(self) -> int:
        """Return how many feeds answered, each publisher of an article as one."""
        feeds = sum(source != gdelt.ARTICLES.name for _, source in self.found)
        return feeds + len({item.publisher for item in self.found.get((_GDELT, gdelt.ARTICLES.name), ())})


def headline_fallbacks(ctx: ToolContext) -> tuple[Fallback[Collected], ...]:
    """Return the fallback that reads all feeds at once; feeds that fail are left out.

    It raises the first error when none answers.
    """
    pairs = [(publisher, source) for publisher, sources in NEWS.items() for source in sources]

    async def collect(reading: FallbackReader) -> Collected:
        round_ = _Round(ctx, reading)
        async with anyio.create_task_group() as tasks:
            for publisher, source in pairs:
                query = Recent(ctx.now) if source is STORIES_24H else None
                tasks.start_soon(round_.ask, publisher, source, query)
        if round_.count_feeds() >= LEAST_FEEDS:
            return round_.collected(pairs)
        await round_.ask(_GDELT, gdelt.ARTICLES)
        return round_.collected([*pairs, (_GDELT, gdelt.ARTICLES)])

    return (collect,)


def items_of(publisher: str, entries: Iterable[Any]) -> tuple[Item, ...]:
    """Return the headlines or stories of one feed as items."""
    items = []
    for each in entries:
        url, at = (each.url or _talk(each), each.created_at) if isinstance(each, Story) else (each.url, each.at)
        said = without_publisher(each.title, always=publisher == "google_news")
        items.append(Item(each.domain if isinstance(each, Article) else publisher, each.title, said, url, at))
    return tuple(items)


def _talk(story: Story) -> str:
    return f"https://news.ycombinator.com/item?id={story.id}"


def without_publisher(title: str, *, always: bool = False) -> str:
    """Return the title without ` - Publisher` at its end: any text after the dash when `always`, else a known name."""
    match = _LAST_PART.search(title)
    if match is None or not (always or match[1].strip().casefold() in PUBLISHERS):
        return title
    return title[: match.start()] or title


def of_the_day(items: Iterable[Item], now: datetime) -> list[Item]:
    """Return the items of the past 24 hours, oldest first; of several with one address or title, only the first."""
    addresses: set[str] = set()
    titles: set[str] = set()
    recent = []
    for item in sorted((item for item in items if now - DAY < item.at <= now), key=lambda item: item.at):
        address, title = canonical(item.url), folded(item.said)
        if address not in addresses and title not in titles:
            recent.append(item)
        addresses |= {address} - {""}
        titles |= {title} - {""}
    return recent


@functools.lru_cache(4096)
def canonical(url: str | None) -> str:
    """Return the address without scheme, `www.`, `utm_*` and fragment; empty for none."""
    if url is None:
        return ""
    address, _, query = url.partition("#")[0].partition("://")[2].partition("?")
    host, _, path = address.partition("/")
    if "utm_" in query:
        named = parse_qsl(query, keep_blank_values=True)
        query = urlencode([(name, value) for name, value in named if name[:4] != "utm_"])
    return f"{host.lower().removeprefix('www.')}/{path}".rstrip("/") + f"?{query}"


@functools.lru_cache(4096)
def folded(title: str) -> str:
    """Return the letters and digits of a title, without case."""
    return "".join(filter(str.isalnum, title.casefold()))
