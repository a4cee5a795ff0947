"""The headlines of a day from many feeds: read side by side, without undated ones, and each story once."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio

from tools.sources import news_feeds, reddit
from tools.sources.hackernews import Story
from tools.sources.hackernews_algolia import STORIES_24H, Recent
from tools.sources.news_feeds import GOOGLE_NEWS
from toolserver.context import Leg, Reading
from toolserver.errors import SourceDown, SourceError, SourceUnusable
from toolserver.notes import SourceNote
from toolserver.upstream.source import Source

DAY = timedelta(hours=24)
PATIENCE_S = 8.0  # for all feeds together; who is later answers the next call
PACED_S = 4.0  # for boards of Reddit, which are asked ten seconds apart by our own choice: a board a call is enough
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
    """A headline and who has it. `said` is the title without the publisher's name after it."""

    publisher: str
    title: str
    said: str
    url: str | None
    at: datetime


class Collected(NamedTuple):
    """What the feeds gave, how many of them answered, and which did not."""

    items: tuple[Item, ...]
    answered: int
    missing: tuple[str, ...]


def headline_legs(now: datetime) -> tuple[Leg[Collected], ...]:
    """All feeds at once; those that do not answer are left out. Raises the first error when none does."""

    async def collect(reading: Reading) -> Collected:
        found: dict[tuple[str, str], tuple[Item, ...]] = {}
        errors: dict[str, SourceError] = {}

        async def read(publisher: str, source: Source[Any, Any]) -> None:
            query = Recent(now) if source is STORIES_24H else None
            patience = PACED_S if publisher == "reddit" else PATIENCE_S
            try:
                with anyio.fail_after(patience):
                    found[publisher, source.name] = items_of(publisher, await reading.read(source, query))
                return
            except TimeoutError:
                error: SourceError = SourceDown(f"no answer in {patience:g} s", word="timeout")
            except SourceError as failure:
                error = failure
            if not isinstance(error, SourceUnusable):
                errors[source.name] = error
                reading.notes.append(SourceNote(source, reading.section, "error", reason=error.reason))

        pairs = [(publisher, source) for publisher, sources in NEWS.items() for source in sources]
        async with anyio.create_task_group() as tasks:
            for publisher, source in pairs:
                tasks.start_soon(read, publisher, source)
        if not found:
            raise next(iter(errors.values()), SourceDown("no feed"))
        in_order = ((publisher, source.name) for publisher, source in pairs)  # not that of arrival
        items = tuple(item for key in in_order for item in found.get(key, ()))
        return Collected(items, len(found), tuple(source.name for _, source in pairs if source.name in errors))

    return (collect,)


def items_of(publisher: str, found: Iterable[Any]) -> tuple[Item, ...]:
    """The headlines or stories of one feed as items."""
    made = []
    for each in found:
        url, at = (each.url or _talk(each), each.created_at) if isinstance(each, Story) else (each.url, each.at)
        said = without_publisher(each.title, always=publisher == "google_news")
        made.append(Item(publisher, each.title, said, url, at))
    return tuple(made)


def _talk(story: Story) -> str:
    return f"https://news.ycombinator.com/item?id={story.id}"


def without_publisher(title: str, *, always: bool = False) -> str:
    """The title without ` - Publisher` at its end: whatever stands there when `always`, else a known name."""
    match = _LAST_PART.search(title)
    if match is None or not (always or match[1].strip().casefold() in PUBLISHERS):
        return title
    return title[: match.start()] or title


def of_the_day(items: Iterable[Item], now: datetime) -> list[Item]:
    """The items of the past 24 hours, oldest first; of those with the same address or title only the first."""
    addresses: set[str] = set()
    titles: set[str] = set()
    kept = []
    for item in sorted((item for item in items if now - DAY < item.at <= now), key=lambda item: item.at):
        address, title = canonical(item.url), folded(item.said)
        if address not in addresses and title not in titles:
            kept.append(item)
        addresses |= {address} - {""}
        titles |= {title} - {""}
    return kept


def canonical(url: str | None) -> str:
    """The address without scheme, `www.`, `utm_*` and fragment; empty for none."""
    if url is None:
        return ""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name[:4] != "utm_"]
    host = (parts.hostname or "").removeprefix("www.")
    return f"{host}{parts.path.rstrip('/')}?{urlencode(query)}"


def folded(title: str) -> str:
    """The letters and digits of a title, without case."""
    return "".join(character for character in title.casefold() if character.isalnum())
