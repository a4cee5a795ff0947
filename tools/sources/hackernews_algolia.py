"""Hacker News search by Algolia (JSON, no key): what is on the front page, and all stories of a day.

https://hn.algolia.com/api
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.shared.numbers import number, positive
from tools.shared.optional import optional
from tools.shared.text import NAME, clean, clean_or_none, web_url
from tools.shared.times import from_epoch
from tools.sources.hackernews import Story
from tools.sources.hosts import HN_ALGOLIA
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

API = "https://hn.algolia.com/api/v1"
LICENCE = Licence("unclear", "Hacker News Search by Algolia", "https://hn.algolia.com/api")
STEP_S = 300  # the window of a day moves in steps, so that the same URL is asked for a while


class Recent(NamedTuple):
    """Stories of the hours before a time that have at least so many points."""

    until: datetime
    hours: int = 24
    points: int = 2


def front_page_request(query: None, keys: Keys) -> Get:
    return Get(f"{API}/search", params={"tags": "front_page", "hitsPerPage": "50"})


def recent_request(query: Recent, keys: Keys) -> Get:
    until = int(query.until.timestamp()) // STEP_S * STEP_S
    return Get(
        f"{API}/search_by_date",
        params={
            "tags": "story",
            "numericFilters": f"created_at_i>{until - query.hours * 3600},points>={query.points}",
            "hitsPerPage": "500",
        },
    )


def parse(body: Any, query: Recent | None) -> tuple[Story, ...]:
    """Every hit that is a story, in the order of the answer, which is not that of the page."""
    hits = body["hits"]
    if not isinstance(hits, list):
        raise SourceChanged(f"hits are not a list: {hits!r:.40}")
    return tuple(_story(hit) for hit in hits if "story" in (hit.get("_tags") or ["story"]))


def _story(hit: dict[str, Any]) -> Story:
    comments = optional(number, hit.get("num_comments"))
    return Story(
        id=int(positive(hit["objectID"])),
        title=clean(hit["title"]),
        url=web_url(hit.get("url")),
        points=int(number(hit["points"])),
        comments=None if comments is None else int(comments),
        author=clean_or_none(hit.get("author"), NAME),
        created_at=from_epoch(hit["created_at_i"]),
    )


def newest(stories: tuple[Story, ...]) -> datetime | None:
    return max((story.created_at for story in stories), default=None)


FRONT_PAGE = Source(
    "HackerNewsAlgolia.front_page",
    front_page_request,
    parse,
    licence=LICENCE,
    hosts=HN_ALGOLIA,
    fresh_s=60,
    keep_s=21600,
    timeout_s=6,
    newest=newest,
    least=10,
    untrusted=True,
)

STORIES_24H = Source(
    "HackerNewsAlgolia.stories_24h",
    recent_request,
    parse,
    licence=LICENCE,
    hosts=HN_ALGOLIA,
    fresh_s=300,
    keep_s=21600,
    timeout_s=8,
    newest=newest,
    least=50,
    key=lambda query: (query.hours, query.points),  # the window moves with the clock, its meaning does not
    untrusted=True,
)
