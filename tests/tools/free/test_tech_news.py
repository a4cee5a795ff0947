"""The tech news tool: three ways to the same front page."""

import pytest

import tools.simulated.hackernews  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, SimDesk
from tools.free.tech_news import tech_news
from tools.parsing.stories import Story
from tools.shared.front_page import is_behind, item_by_item, ranked, require_given
from toolserver.context.context import FallbackReader
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError
from toolserver.world.model import ROUTES, World

ALGOLIA, IDS, ITEM = "HackerNewsAlgolia.front_page", "HackerNews.top_ids", "HackerNews.item"
KEYS = ("rank", "id", "title", "score", "comments")


async def test_the_front_page_is_in_page_order_and_equals_the_world(compose):
    made = await compose(tech_news)

    expected = ROUTES.expectations["tech-news"](World(1, NOW), {})
    assert [{k: s[k] for k in KEYS} for s in made.json] == expected
    assert len(expected) == 30
    assert {n.source.name for n in made.notes.sources} == {ALGOLIA, IDS}
    assert not made.notes.warnings


async def test_a_text_post_links_to_its_discussion(compose):
    made = await compose(tech_news)
    for story in made.json:
        assert story["discussion_url"] == f"https://news.ycombinator.com/item?id={story['id']}"
        assert (story["url"] == story["discussion_url"]) == story["title"].startswith("Ask HN")


async def test_without_search_the_items_are_read_and_say_the_same(compose):
    usual = await compose(tech_news)
    made = await compose(tech_news, down={ALGOLIA})

    assert made.json == usual.json[: len(made.json)]
    assert len(made.json) >= 25  # of thirty ids, jobs and dead ones are left out
    by_name = {n.source.name: n for n in made.notes.sources}
    assert {by_name[n].status for n in (IDS, ITEM)} == {"fallback"}
    assert by_name[ITEM].replaces == ALGOLIA
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_without_the_page_the_order_is_by_score(compose):
    made = await compose(tech_news, down={IDS, ITEM})

    scores = [s["score"] for s in made.json]
    assert scores == sorted(scores, reverse=True)
    assert [s["rank"] for s in made.json] == list(range(1, 31))
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


@pytest.mark.parametrize(
    "faults",
    [
        {"down": {"*"}},
        {"down": {ALGOLIA, ITEM}},
        {"down": {IDS}, "forms": {ALGOLIA: "empty"}},
        {"forms": {ALGOLIA: "empty", IDS: "error200"}},
        {"forms": {ALGOLIA: "empty", ITEM: "empty"}},
    ],
)
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(tech_news, **faults)


async def test_no_more_than_thirty_items_are_read(compose):
    made = await compose(tech_news, down={ALGOLIA})
    assert sum(name == ITEM for name, _ in made.desk.asked) == 30


async def test_when_every_item_fails_the_reason_is_theirs():
    world = World(1, NOW)
    reading = FallbackReader(SimDesk(world, down={ITEM}), "data", lambda: world.time, 60)
    with pytest.raises(SourceDown):
        await item_by_item(reading)


async def test_the_drifted_search_makes_the_same_page(compose):
    assert (await compose(tech_news, forms={ALGOLIA: "drift"})).json == (await compose(tech_news)).json


def test_fewer_than_ten_stories_are_not_a_front_page():
    story = Story(1, "A title", None, 5, 0, None, World(1, NOW).time)
    assert len(ranked([story] * 10)) == 10
    with pytest.raises(SourceEmpty):
        ranked([story] * 9 + [story._replace(comments=None)])


def test_ids_far_above_the_newest_are_those_of_no_story():
    require_given([48_000_000, 47_999_000], [48_001_000])
    with pytest.raises(SourceChanged):
        require_given([48_000_000, 47_999_000], [47_999_000, 72_000_000])


def test_a_page_is_behind_when_search_knows_newer_stories_that_there_can_be():
    ids = [48_000_000, 47_999_000]
    assert is_behind(ids, [48_000_100, 48_000_200])
    assert not is_behind(ids, [72_000_100, 72_000_200])
