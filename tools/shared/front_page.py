"""The front page of Hacker News: the ways to get it and the item it is made of."""

from collections.abc import Iterable
from contextlib import suppress

import anyio
from pydantic import Field

from tools.shared.together import all_of
from tools.sources.hackernews import ITEM, TOP_IDS, Story
from tools.sources.hackernews_algolia import FRONT_PAGE
from toolserver.context import Leg, Reading, via
from toolserver.errors import SourceChanged, SourceEmpty, SourceError
from toolserver.payloads import Payload, Timestamp

SHOWN = 30
LEAST = 10
PARALLEL = 5
SOURCES = (FRONT_PAGE, TOP_IDS, ITEM)


class StoryItem(Payload):
    rank: int = Field(description="Place on the page, from 1")
    id: int
    title: str
    url: str = Field(description="The article, or the discussion for text posts")
    score: int
    comments: int
    author: str | None
    time: Timestamp = Field(description="When submitted")
    discussion_url: str


def front_page() -> tuple[Leg[tuple[StoryItem, ...]], ...]:
    """Search for the fields and the page for the order; the page and its items; search alone, by points."""
    return found_and_ordered, item_by_item, via(FRONT_PAGE, None, by_points)


async def found_and_ordered(reading: Reading) -> tuple[StoryItem, ...]:
    """The stories as search holds them, in the order of the page."""
    ids, stories = await all_of(reading, (TOP_IDS, None), (FRONT_PAGE, None))
    try:
        return in_order(ids, stories)
    except SourceEmpty as error:
        raise SourceEmpty(f"{error} of {FRONT_PAGE.name} are on the page of {TOP_IDS.name}") from error


async def item_by_item(reading: Reading) -> tuple[StoryItem, ...]:
    """The first ids of the page, each read on its own. Those that fail are left out."""
    ids = (await reading.read(TOP_IDS))[:SHOWN]
    found: list[Story] = []
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
            found.append(story)

    async with anyio.create_task_group() as tasks:
        for item in ids:
            tasks.start_soon(read, item)
    with suppress(SourceEmpty):
        return in_order(ids, found)
    raise errors[0] if errors else SourceEmpty(f"{len(found)} stories")


def in_order(ids: Iterable[int], stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    """The stories whose ids are given, in that order."""
    by_id = {story.id: story for story in stories}
    return ranked(by_id[item] for item in ids if item in by_id)


def by_points(stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    return ranked(sorted(stories, key=lambda story: (-story.points, -story.id)))


def ranked(stories: Iterable[Story]) -> tuple[StoryItem, ...]:
    """The first 30 stories as items. Raises SourceEmpty below ten: that is not a front page."""
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
