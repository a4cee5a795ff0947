"""Read Hacker News (Firebase API, no key): the order of the front page, and single items.

https://github.com/HackerNews/API
"""

from typing import Any

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch, number, positive, web_url
from tools.parsing.stories import Story
from tools.sources.hosts import HN_FIREBASE, HOUR
from toolserver import Get, Keys, Licence, Proof, Source, SourceChanged, read_rows

API = "https://hacker-news.firebaseio.com/v0"
LICENCE = Licence("unclear", "Hacker News (Y Combinator)", "https://www.ycombinator.com/legal/")


def parse_ids(body: Any, query: None) -> tuple[int, ...]:
    """Return item ids in the order of the front page and the pages after it, jobs included."""
    if not isinstance(body, list):
        raise SourceChanged(f"not a list: {body!r:.40}")
    return read_rows(body, lambda item: int(positive(item)))


TOP_IDS = Source(
    "HackerNews.top_ids",
    Get(f"{API}/topstories.json"),
    parse_ids,
    licence=LICENCE,
    hosts=HN_FIREBASE,
    fresh_s=60,
    moves=lambda ids: ids,
    keep_s=6 * HOUR,
    timeout_s=6,
    least=100,
)


def item_request(item: int, keys: Keys) -> Get:
    return Get(f"{API}/item/{item}.json")


def parse_item(body: Any, item: int) -> Story | None:
    """Return the story; None if it is gone (`null`, deleted, dead) or is a job, poll or comment."""
    if body is None or body.get("deleted") or body.get("dead"):
        return None
    if int(number(body["id"])) != item:
        raise SourceChanged(f"asked for {item}, got {body['id']!r:.40}")
    return _story(body) if body["type"] == "story" else None


def _story(body: dict[str, Any]) -> Story:
    return Story(
        id=int(positive(body["id"])),
        title=clean(body["title"]),
        url=web_url(body.get("url")),
        points=int(number(body["score"])),
        comments=int(number(body["descendants"])),
        author=clean_or_none(body.get("by"), NAME),
        created_at=from_epoch(body["time"]),
    )


ITEM = Source(
    "HackerNews.item",
    item_request,
    parse_item,
    licence=LICENCE,
    hosts=HN_FIREBASE,
    fresh_s=120,
    ageless="the query names the item, however old that is",
    keep_s=6 * HOUR,
    timeout_s=5,
    newest=lambda story: story.created_at if story else None,
    least=0,
    proof=Proof.harmless("the query names the item, and one that is gone is left out of the page"),
    untrusted=True,
    probe=8863,
)
