"""Check that cached pages equal those that a world makes."""

from tests.pages import MadePages
from toolserver.world.model import Ask, Edits, Reply, World

ASK = Ask("GET", "one.example", "/a", "q=1", {"accept": "x"})


def counting():
    """A provider that counts how often it is asked."""
    asked = []

    def handler(world, ask):
        asked.append(ask)
        return Reply.json([len(asked), world.now, ask.query])

    return asked, handler


def test_the_same_request_at_the_same_instant_is_answered_once():
    asked, handler = counting()
    pages = MadePages()
    first = pages.answer(handler, World(1, 10.0), ASK)

    assert pages.answer(handler, World(1, 10.0), ASK) is first
    assert len(asked) == 1


def test_whatever_differs_is_another_page():
    asked, handler = counting()
    pages = MadePages()
    others = [Ask("POST", "one.example", "/a", "q=1", {"accept": "x"}), Ask("GET", "one.example", "/a", "q=2")]
    others += [Ask("GET", "one.example", "/b", "q=1"), Ask("GET", "one.example", "/a", "q=1", {"x-key": "y"})]
    for ask in [ASK, *others]:
        pages.answer(handler, World(1, 10.0), ask)
    for world in (World(2, 10.0), World(1, 11.0)):
        pages.answer(handler, world, ASK)

    assert len(asked) == 7


def test_a_world_that_was_edited_is_asked_each_time():
    asked, handler = counting()
    pages = MadePages()
    for edits in (Edits(pins={"a": [(0, 9, 1)]}), Edits(events=[{"kind": "a", "at": 1}])):
        for _ in range(2):
            pages.answer(handler, World(1, 10.0, edits), ASK)

    assert len(asked) == 4


def test_the_oldest_pages_go_when_there_are_too_many_bytes():
    asked, handler = counting()
    pages = MadePages(most_bytes=30)
    for second in (1.0, 2.0, 3.0, 1.0):
        pages.answer(handler, World(1, second), ASK)

    assert len(asked) == 4
