"""Search Hacker News by Algolia (JSON, no key): the stories on the front page, and all stories of a day.

https://hn.algolia.com/api
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch, number, optional, positive, web_url
from tools.parsing.stories import Story
from tools.sources.hosts import DAY, HN_ALGOLIA, HOUR
from toolserver import Get, Keys, Licence, Source, SourceChanged, read_rows

API = "https://hn.algolia.com/api/v1"
LICENCE = Licence("unclear", "Hacker News Search by Algolia", "https://hn.algolia.com/api")
STEP_S = 300  # the window of a day moves in steps, so that the URL stays the same for a while


class Recent(NamedTuple):
    """Stories of the hours before a time that have at least this many points."""

    until: datetime
    hours: int = 24
    points: int = 2


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
    """Return every hit that is a story, in the order of the answer, which differs from that of the page."""
    hits = body["hits"]
    if not isinstance(hits, list):
        raise SourceChanged(f"hits are not a list: {hits!r:.40}")
    return read_rows(hits, lambda hit: _story(hit) if "story" in (hit.get("_tags") or ["story"]) else None)


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
    Get(f"{API}/search", params={"tags": "front_page", "hitsPerPage": "50"}),
    parse,
    licence=LICENCE,
    hosts=HN_ALGOLIA,
    fresh_s=60,
    keep_s=6 * HOUR,
    timeout_s=6,
    newest=newest,
    newest_max_s=10 * DAY,
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
    keep_s=6 * HOUR,
    newest=newest,
    newest_max_s=2 * HOUR,
    least=50,
    key=lambda query: (query.hours, query.points),  # the window moves with the clock, its meaning stays the same
    untrusted=True,
    probe=Recent,
)
