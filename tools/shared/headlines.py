"""Collect the headlines of a day from many feeds: read in parallel, without undated ones, and each story once."""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anyio

from tools.parsing.stories import Story
from tools.sources import news_feeds, reddit
from tools.sources.hackernews_algolia import STORIES_24H, Recent
from tools.sources.news_feeds import GOOGLE_NEWS
from toolserver import (
    Fallback,
    FallbackReader,
    Source,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceLimited,
    SourceNote,
    SourceUnusable,
    ToolContext,
)

DAY = timedelta(hours=24)
PATIENCE_S = 8.0  # for all feeds together; slower feeds answer the next call
PACED_S = 4.0  # for the board of Reddit whose turn it is
DUE = 0.8  # of the time that a board is fresh: after that, reading it requests it again
TURNS = "headlines.turns"
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
SOURCES = tuple(source for sources in NEWS.values() for source in sources)
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


class _Round:
    """One round of all feeds, for one fallback: the items found, and the feeds that failed."""

    def __init__(self, ctx: ToolContext, reading: FallbackReader) -> None:
        self._ctx, self._reading = ctx, reading
        self.found: dict[tuple[str, str], tuple[Item, ...]] = {}
        self.errors: dict[Source[Any, Any], SourceError] = {}

    async def ask(
        self, publisher: str, source: Source[Any, Any], patience_s: float, query: Any = None
    ) -> SourceError | None:
        """Read a feed. Return the reason if it fails, otherwise None."""
        failure: SourceError
        try:
            with anyio.fail_after(patience_s):
                self.take(publisher, source, await self._reading.read(source, query))
            return None
        except TimeoutError:
            failure = SourceDown(f"no answer in {patience_s:g} s", word="timeout")
        except SourceError as error:
            failure = error
        self.miss(source, failure)
        return failure

    async def boards(self) -> None:
        """Read one board of Reddit, the next in turn that is due: requests have to be ten seconds apart.

        The other boards keep their last answer as long as it is not stale.
        """
        cached = {board: await self._reading.read_kept(board) for board in reddit.HOT}
        turn = self._turn(cached)
        unasked: SourceError = SourceLimited("boards are asked in turn, ten seconds apart", word="budget")
        if turn is not None:
            failure = await self.ask("reddit", turn, PACED_S)
            if failure is None:
                del cached[turn]
            elif isinstance(failure, SourceExcluded):
                unasked = failure  # an exclusion of one board applies to all
        for board, answer in cached.items():
            if answer is not None:
                self.errors.pop(board, None)
                self.take("reddit", board, answer[0])
                self._reading.notes.append(answer[1])
            elif board is not turn:
                self.miss(board, unasked)

    def _turn(self, cached: Mapping[Source[Any, Any], tuple[Any, SourceNote] | None]) -> Source[Any, Any] | None:
        """Return the board to read now: of those whose answer is growing old, the one read longest ago."""
        now, history = self._ctx.now, self._ctx.history

        def due(board: Source[Any, Any]) -> bool:
            at = answer[1].fetched_at if (answer := cached[board]) else None
            return at is None or (now - at).total_seconds() > DUE * board.fresh_s

        def last_read_at(board: Source[Any, Any]) -> float:
            last = history.last(TURNS, board.name)
            return last.at.timestamp() if last else 0.0

        turn = min(filter(due, cached), key=last_read_at, default=None)
        if turn is not None:
            history.note(TURNS, turn.name, 1, now, keep_s=DAY.total_seconds())
        return turn

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
        return Collected(items, len(self.found), tuple(s.name for _, s in pairs if s in self.errors), barred)


def headline_fallbacks(ctx: ToolContext) -> tuple[Fallback[Collected], ...]:
    """Return the fallback that reads all feeds at once; feeds that fail are left out.

    It raises the first error when none answers.
    """
    pairs = [(publisher, source) for publisher, sources in NEWS.items() for source in sources]

    async def collect(reading: FallbackReader) -> Collected:
        round_ = _Round(ctx, reading)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(round_.boards)
            for publisher, source in pairs:
                if source not in reddit.HOT:
                    query = Recent(ctx.now) if source is STORIES_24H else None
                    tasks.start_soon(round_.ask, publisher, source, PATIENCE_S, query)
        return round_.collected(pairs)

    return (collect,)


def items_of(publisher: str, entries: Iterable[Any]) -> tuple[Item, ...]:
    """Return the headlines or stories of one feed as items."""
    items = []
    for each in entries:
        url, at = (each.url or _talk(each), each.created_at) if isinstance(each, Story) else (each.url, each.at)
        said = without_publisher(each.title, always=publisher == "google_news")
        items.append(Item(publisher, each.title, said, url, at))
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
