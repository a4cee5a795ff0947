"""Get the front page of Hacker News, and make its items."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import anyio
from pydantic import Field

from tools.parsing.stories import Story
from tools.sources.hackernews import ITEM, TOP_IDS
from tools.sources.hackernews_algolia import FRONT_PAGE
from toolserver import (
    Fallback,
    FallbackReader,
    Payload,
    SourceChanged,
    SourceEmpty,
    SourceError,
    SourceUnproved,
    Timestamp,
    read_all,
    read_beside,
)

SHOWN = 30
LEAST = 10
ON_TOP = 100  # the site's first 100 ids include the page that search calls its front page
FIRST, KNOWN = 10, 6  # search knows this many of the site's first ten stories, unless one of the two is hours behind
FAR = 1.01  # ids grow by a hundredth in a month: an id so far above the site's newest belongs to no story
YOUNG = timedelta(hours=12)  # the page always has a story this young, unless nothing happens at all
PARALLEL = 5
SOURCES = (FRONT_PAGE, TOP_IDS, ITEM)


class StoryItem(Payload):
    rank: int = Field(description="Place on the page, from 1")
    id: int = Field(description="Hacker News's id of the story")
    title: str = Field(description="Title of the story")
    url: str = Field(description="The article, or the discussion for text posts")
    score: int = Field(description="Points on Hacker News")
    comments: int = Field(description="Comments on Hacker News")
    author: str | None = Field(description="Who submitted it; null: not given")
    time: Timestamp = Field(description="When it was submitted")
    discussion_url: str = Field(description="Its page on Hacker News")


async def proved_page(reading: FallbackReader) -> tuple[Story, ...]:
    """Return the page of search, proved current by the site's own order, or else by its newest story.

    Raises SourceUnproved.
    """
    both = await read_beside(reading, (FRONT_PAGE, None), (TOP_IDS, None))
    stories, ids = both
    if not isinstance(ids, SourceError):
        require_one_page(ids, stories)
    return require_young(stories, _searched_at(reading))


def _searched_at(reading: FallbackReader) -> datetime | None:
    return next(note.fetched_at for note in reading.notes if note.source is FRONT_PAGE)


def require_one_page(ids: Sequence[int], stories: Iterable[Story]) -> None:
    """Raise SourceUnproved when the site and search do not show the same page: one of them is behind."""
    story_ids = {story.id for story in stories}
    require_given(ids, story_ids)
    if is_behind(ids, story_ids):
        raise SourceUnproved(f"{TOP_IDS.name} lacks the newest of {FRONT_PAGE.name}")
    if len(story_ids.intersection(ids[:ON_TOP])) < LEAST or len(story_ids.intersection(ids[:FIRST])) < KNOWN:
        raise SourceUnproved(f"{FRONT_PAGE.name} and {TOP_IDS.name} do not show the same page")


def require_given(ids: Sequence[int], story_ids: Iterable[int]) -> None:
    """Raise SourceChanged when search names ids that the site cannot have given to a story yet."""
    newest = max(ids)
    if any(story > newest * FAR for story in story_ids):
        raise SourceChanged(f"{FRONT_PAGE.name} names ids far above those of {TOP_IDS.name}")


def require_young(stories: tuple[Story, ...], now: datetime | None) -> tuple[Story, ...]:
    """Return the stories. Raises SourceUnproved when none of them is from the past hours."""
    newest = max((story.created_at for story in stories), default=None)
    if now is None or newest is None or now - newest > YOUNG:
        raise SourceUnproved("no story of the past 12 hours")
    return stories


def front_page() -> tuple[Fallback[tuple[StoryItem, ...]], ...]:
    """Return the fallbacks: search with the page's order; the page and its items; search alone, by points."""
    return found_and_ordered, item_by_item, search_alone


async def search_alone(reading: FallbackReader) -> tuple[StoryItem, ...]:
    stories = await reading.read(FRONT_PAGE)
    fetched_at = reading.notes[-1].fetched_at
    if site := await reading.read_kept(TOP_IDS):
        require_given(site[0], (story.id for story in stories))
    return by_points(require_young(stories, fetched_at))


def is_behind(ids: Sequence[int], story_ids: Iterable[int]) -> bool:
    """Return True if search knows more than one story newer than the site's whole page: ids only grow."""
    newest = max(ids[:ON_TOP])
    return sum(newest < story <= newest * FAR for story in story_ids) > 1


async def found_and_ordered(reading: FallbackReader) -> tuple[StoryItem, ...]:
    """Return the stories of search, in the order of the page. Raises SourceUnproved when both are old."""
    ids, stories = await read_all(reading, (TOP_IDS, None), (FRONT_PAGE, None))
    require_one_page(ids, stories)
    return in_order(ids[:ON_TOP], require_young(stories, _searched_at(reading)))


async def item_by_item(reading: FallbackReader) -> tuple[StoryItem, ...]:
    """Read the first ids of the page one by one. Those that fail are left out.

    Raises SourceUnproved when the kept answer of search, if there is one, has a newer page.
    """
    ids = await reading.read(TOP_IDS)
    fetched_at = reading.notes[-1].fetched_at
    searched = await reading.read_kept(FRONT_PAGE)
    if searched and is_behind(ids, (story.id for story in searched[0])):
        raise SourceUnproved(f"the page is older than that of {FRONT_PAGE.name}")
    ids = ids[:SHOWN]
    stories: list[Story] = []
    errors: list[SourceError] = []
    turn = anyio.Semaphore(PARALLEL)

    async def read(item: int) -> None:
        async with turn:
            try:
                story = await reading.read(ITEM, item)
            except SourceError as error:
                errors.append(error)
                return
        if story:
            stories.append(story)

    async with anyio.create_task_group() as tasks:
        for item in ids:
            tasks.start_soon(read, item)
    with suppress(SourceEmpty):
        return in_order(ids, require_young(tuple(stories), fetched_at))
    raise errors[0] if errors else SourceEmpty(f"{len(stories)} stories")


def in_order(ids: Iterable[int], stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    """Return the stories whose ids are given, in that order."""
    by_id = {story.id: story for story in stories}
    return ranked(by_id[item] for item in ids if item in by_id)


def by_points(stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    return ranked(sorted(stories, key=lambda story: (-story.points, -story.id)))


def ranked(stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    """Return the first 30 stories as items. Raises SourceEmpty below ten, which is not a front page."""
    complete = [story for story in stories if story.title and story.comments is not None][:SHOWN]
    if len(complete) < LEAST:
        raise SourceEmpty(f"{len(complete)} stories")
    if not any(story.points for story in complete):
        raise SourceChanged("no story has a point")
    return tuple(shown(rank, story) for rank, story in enumerate(complete, 1))


def shown(rank: int, story: Story) -> StoryItem:
    discussion = f"https://news.ycombinator.com/item?id={story.id}"
    return StoryItem(
        rank=rank,
        id=story.id,
        title=story.title,
        url=story.url or discussion,
        score=story.points,
        comments=story.comments or 0,
        author=story.author,
        time=story.created_at,
        discussion_url=discussion,
    )
