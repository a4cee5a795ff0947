"""Hacker News: the Firebase API, Algolia's search, and the stories of the simulated world."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.hackernews  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.hackernews import by_id, front_page, points, rank_stories
from tools.sources import hackernews_algolia as algolia
from tools.sources.hackernews import ITEM, TOP_IDS, parse_ids, parse_item
from tools.sources.hackernews_algolia import FRONT_PAGE, STORIES_24H, Recent
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import Edits, World

TIME = datetime.fromtimestamp(NOW, UTC)
HIT = {
    "_tags": ["story", "front_page"],
    "author": "ada",
    "created_at_i": 1785703708,
    "num_comments": 32,
    "objectID": "49148159",
    "points": 37,
    "title": "A title",
    "url": "https://ada.example/",
}


def test_recorded_hits_parse_to_their_values(sample):
    raw = json.loads(sample("hn/algolia-search-30.json"))
    stories = algolia.parse(raw, None)

    assert len(stories) == 30
    assert [str(s.id) for s in stories] == [hit["objectID"] for hit in raw["hits"]]
    assert stories[0].title == "AI Mania: From Tulips to Tokens"
    assert (stories[0].points, stories[0].comments, stories[0].author) == (37, 32, "Lambda11")
    assert stories[0].created_at == datetime(2026, 8, 2, 20, 48, 28, tzinfo=UTC)


def test_a_recorded_story_parses_to_its_values(sample):
    story = parse_item(json.loads(sample("hn/firebase-item-story.json")), 8863)

    assert (story.title, story.points, story.comments, story.author) == (
        "My YC app: Dropbox - Throw away your USB drive",
        111,
        71,
        "dhouston",
    )
    assert story.url == "http://www.getdropbox.com/u/2/screencast.html"


def test_a_text_post_has_no_url_and_a_job_is_no_story(sample):
    assert parse_item(json.loads(sample("hn/firebase-item-ask.json")), 121003).url is None
    assert parse_item(json.loads(sample("hn/firebase-item-job.json")), 192327) is None


@pytest.mark.parametrize("body", [None, {"id": 1, "deleted": True}, {"id": 1, "dead": True, "type": "story"}])
def test_what_is_gone_is_none_not_an_error(body):
    assert parse_item(body, 1) is None


def test_an_answer_for_another_item_is_a_changed_source():
    with pytest.raises(SourceChanged):
        parse_item({"id": 2, "type": "story"}, 1)


@pytest.mark.parametrize("body", [None, {"error": "Permission denied"}, "<html>", [None], ["x"], [0], [True]])
def test_what_is_not_a_list_of_ids_is_refused(body):
    with pytest.raises((SourceChanged, ValueError)):
        parse_ids(body, None)


@pytest.mark.parametrize(
    "body", [None, [], "<html>", {}, {"hits": None}, {"hits": {}}, {"hits": [{}]}, {"hits": [HIT | {"points": None}]}]
)
def test_what_is_not_a_list_of_hits_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, ValueError, AttributeError)):
        algolia.parse(body, None)


def test_jobs_and_comments_among_the_hits_are_left_out():
    body = {"hits": [HIT, {"_tags": ["job", "front_page"], "title": "Acme is hiring", "points": None}]}
    assert [s.id for s in algolia.parse(body, None)] == [49148159]


def test_third_party_text_is_cleaned_and_odd_links_are_dropped():
    hit = HIT | {"title": "A\u202e &amp;\n B\x00", "url": "javascript:alert(1)"}
    (story,) = algolia.parse({"hits": [hit]}, None)
    assert (story.title, story.url) == ("A & B", None)


def test_the_window_of_a_day_is_asked_in_steps_and_cached_without_its_date():
    one = algolia.recent_request(Recent(datetime.fromtimestamp(1_800_000_001, UTC)), {})
    other = algolia.recent_request(Recent(datetime.fromtimestamp(1_800_000_299, UTC)), {})

    assert one.params == other.params
    assert one.params["numericFilters"] == "created_at_i>1799913600,points>=2"
    assert STORIES_24H.key(Recent(TIME)) == STORIES_24H.key(Recent(TIME.replace(year=2030)))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "objectID": st.integers(1, 10**9).map(str),
                "title": st.text(),
                "points": st.integers(-10, 10**5),
                "num_comments": st.none() | st.integers(0, 10**4),
                "created_at_i": st.integers(0, 4_000_000_000),
            },
            optional={"url": st.none() | st.text(), "author": st.none() | st.text(), "_tags": st.just(["story"])},
        ),
        max_size=5,
    )
)
def test_parse_never_invents_or_drops_a_story(hits):
    assert [str(s.id) for s in algolia.parse({"hits": hits}, None)] == [hit["objectID"] for hit in hits]


def test_the_twins_agree_on_every_story_of_the_page():
    world = World(1, NOW)
    ids = ask(TOP_IDS)
    stories = {s.id: s for s in ask(FRONT_PAGE)}

    assert len(ids) >= 100
    assert list(ids) == [s.id for s in rank_stories(world)][: len(ids)]
    assert len(stories) == sum(s.kind == "story" for s in front_page(world))
    for story in stories.values():
        assert ask(ITEM, story.id) == story
        assert story.points == points(world, by_id(world, story.id))


def test_the_stories_of_a_day_are_those_with_points_newest_first():
    stories = ask(STORIES_24H, Recent(TIME))
    times = [s.created_at for s in stories]

    assert len(stories) > 200
    assert times == sorted(times, reverse=True)
    assert all(s.points >= 2 for s in stories)
    assert (TIME - times[-1]).total_seconds() <= 86400 + 300


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("hour", [0, 7, 13, 22])
def test_at_any_time_some_stories_entered_the_page_within_the_hour(seed, hour):
    world = World(seed, NOW + hour * 3600)
    before = {s.id for s in front_page(world.at(world.now - 3600))}
    entered = [s for s in front_page(world) if s.id not in before and s.kind == "story"]

    assert len(entered) >= 2
    assert sum(world.now - s.born < 3600 for s in front_page(world)) >= 2


def test_on_a_quiet_day_nothing_enters_the_page():
    edits = Edits(pins={"stories.quiet": [(NOW - 7200, NOW + 7200, 1)]})
    world = World(1, NOW, edits)
    assert {s.id for s in front_page(world)} == {s.id for s in front_page(world.at(NOW - 3600))}


def test_on_a_quiet_day_those_on_top_change_places_every_minute():
    world = World(1, NOW, Edits(pins={"stories.quiet": [(NOW - 7200, NOW + 7200, 1)]}))
    orders = [[s.id for s in rank_stories(world.at(NOW + 60 * minute))] for minute in range(4)]
    assert all(set(one[:20]) == set(orders[0][:20]) and one[20:] == orders[0][20:] for one in orders)
    assert len({tuple(one) for one in orders}) == 4


def test_an_injected_story_is_on_the_page_and_has_an_item():
    world = World(1, NOW, Edits(events=[{"kind": "story", "at": NOW - 600, "title": "Injected", "points": 900}]))
    (found,) = [s for s in ask(FRONT_PAGE, world=world) if s.title == "Injected"]

    assert found.id in ask(TOP_IDS, world=world)[:10]
    assert ask(ITEM, found.id, world=world) == found


def test_the_drifted_form_is_read_like_the_usual_one():
    by_id_ = {s.id: s for s in ask(FRONT_PAGE)}
    assert {s.id: s for s in ask(FRONT_PAGE, form="drift")} == by_id_


def test_fault_forms_never_look_like_a_page():
    assert ask(FRONT_PAGE, form="empty") == ask(TOP_IDS, form="empty") == ask(STORIES_24H, Recent(TIME), form="empty")
    assert ask(ITEM, 40_000_000, form="empty") is None
    with pytest.raises(SourceChanged):
        ask(TOP_IDS, form="error200")
