"""The pictures in previews of links: the newest kept value with its age and source, drawn once for each value."""

import io
from datetime import UTC, datetime

import pytest
from PIL import Image, ImageChops

from rest_bridge.asgi import parse_request
from rest_bridge.pages import social_card
from rest_bridge.pages.social_card import SITE, CardText, SocialCards, draw_card, write_card
from rest_bridge.pages.tool import tool_page
from rest_bridge.static_files import read_static_files
from tests.catalog.tiny import FACTS
from tests.rest_bridge.made import PROJECT
from toolserver.clock import ManualClock
from toolserver.errors import NotFound

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
PRICE = PROJECT["btc_price"]
CARD = {
    "tool": "btc_price",
    "unit": "$",
    "value": 96803.38,
    "note": ["in 24 h at ", "coinbase"],
    "change_percent": -2.05,
    "sources": ["Coinbase"],
    "updated_at": "2027-01-15T08:00:00Z",
    "stale": False,
    "line": [3.0, 2.0, 1.0],
}


class Reader:
    """What kept answers say now, and how often that was asked."""

    def __init__(self, card=CARD):
        self.card, self.asked = card, 0

    async def read_card(self, name):
        self.asked += 1
        return self.card


async def ask(cards, path="/cards/btc_price.png", **headers):
    scope = {"path": path, "headers": [(k.replace("_", "-").encode(), v) for k, v in headers.items()]}
    return await cards.serve(scope, parse_request(scope))


def sized(body):
    return Image.open(io.BytesIO(body)).size


def test_a_picture_says_the_value_its_change_its_age_and_its_source():
    words = write_card(PRICE, FACTS, CARD)
    assert (words.value, words.change, words.note) == ("$96,803.38", -2.05, "in 24 h at coinbase")
    assert words.foot == "2027-01-15 08:00 UTC · data.example · Coinbase"
    assert write_card(PRICE, FACTS, CARD | {"stale": True}).foot.startswith("stale, 2027-01-15 08:00 UTC")


def test_without_a_value_a_picture_says_what_the_tool_does_and_costs():
    assert write_card(PRICE, FACTS, CARD | {"value": None}).value == ""
    words = write_card(PROJECT["premium_macro"], FACTS, None)
    assert (words.value, words.foot) == ("", "2 credits · data.example")
    assert "GDP" in words.note


@pytest.fixture
def drawn(monkeypatch):
    """The words of all pictures that are drawn, in their order."""
    words = []
    monkeypatch.setattr(social_card, "draw_card", lambda one: words.append(one) or b"png %d" % len(words))
    return words


async def test_a_request_never_draws_and_gets_the_picture_of_the_site_until_its_own_is_there(drawn):
    cards = SocialCards(PROJECT, FACTS, Reader(), ManualClock(NOW))
    for _ in range(20):
        assert (await ask(cards)).body == read_static_files()["card.png"].body
    assert drawn == []
    await cards.draw_due()
    for _ in range(20):
        assert (await ask(cards)).body == b"png 1"
    assert len(drawn) == 1


async def test_a_picture_is_drawn_again_when_its_value_changes_and_not_more_than_once_in_five_minutes(drawn):
    reader, clock = Reader(), ManualClock(NOW)
    cards = SocialCards(PROJECT, FACTS, reader, clock)
    await ask(cards)
    for _ in range(10):
        await cards.draw_due()
    assert (len(drawn), reader.asked) == (1, 1)
    clock.advance(301)
    await cards.draw_due()
    assert (len(drawn), reader.asked) == (1, 2), "the same value is not drawn again"
    reader.card = CARD | {"value": 1.0}
    await cards.draw_due()
    assert (await ask(cards)).body == b"png 1"
    clock.advance(301)
    await cards.draw_due()
    assert (await ask(cards)).body == b"png 2"
    etag = dict((await ask(cards)).headers)[b"etag"]
    assert (await ask(cards, if_none_match=etag)).status == 304


async def test_what_nobody_asks_for_is_not_drawn(drawn):
    reader, clock = Reader(), ManualClock(NOW)
    cards = SocialCards(PROJECT, FACTS, reader, clock)
    await cards.draw_due()
    await ask(cards)
    clock.advance(601)
    await cards.draw_due()
    assert (drawn, reader.asked) == ([], 0)


async def test_who_opens_the_page_of_a_tool_will_find_its_picture_drawn(drawn):
    cards = SocialCards(PROJECT, FACTS, Reader(), ManualClock(NOW))

    async def page(scope, request):
        return "the page"

    watched = cards.watch({"/t/btc_price": page, "/docs": page})
    assert set(watched) == {"/t/btc_price"}
    assert await watched["/t/btc_price"]({}, None) == "the page"
    await cards.draw_due()
    assert [words.title for words in drawn] == [PRICE.title]


async def test_each_look_draws_one_picture(drawn):
    cards = SocialCards(PROJECT, FACTS, Reader(), ManualClock(NOW))
    names = ["btc_price", "gas", "premium_macro"]
    for name in names:
        await ask(cards, f"/cards/{name}.png")
    for number in range(1, 4):
        await cards.draw_due()
        assert len(drawn) == number
    await cards.draw_due()
    assert [words.title for words in drawn] == [PROJECT[name].title for name in names]


@pytest.mark.parametrize("path", ["/cards/none.png", "/cards/btc_price", "/cards/btc_price.svg", "/cards/.png"])
async def test_there_is_a_picture_of_tools_only(path):
    with pytest.raises(NotFound):
        await ask(SocialCards(PROJECT, FACTS, Reader(), ManualClock(NOW)), path)


@pytest.mark.parametrize(
    "words", [CardText("Prices", "$96,803.38", 2.05, "x" * 300, "f " * 200, (1, 2, 1)), CardText("W" * 99)]
)
def test_a_picture_has_the_size_that_previews_want_and_is_small(words):
    body = draw_card(words)
    assert sized(body) == (1200, 630)
    assert len(body) < 60_000


def test_a_page_names_its_own_picture_and_without_pillow_that_of_the_site(monkeypatch):
    assert write_head().endswith("/cards/btc_price.png")
    monkeypatch.setattr(social_card, "can_draw", lambda: False)
    assert write_head().endswith("/card.png")


def write_head():
    body = tool_page(PROJECT, FACTS, PRICE, None).body.decode()
    return body.partition('og:image" content="')[2].partition('"')[0]


def test_the_picture_of_the_site_is_drawn_like_those_of_tools():
    kept = Image.open(io.BytesIO(read_static_files()["card.png"].body)).convert("RGB")
    drawn = Image.open(io.BytesIO(draw_card(SITE))).convert("RGB")
    assert kept.size == drawn.size == (1200, 630)
    differing = ImageChops.difference(kept, drawn).convert("L").point(lambda level: 255 * (level > 64))
    assert differing.histogram()[255] < 1200 * 630 * 0.02, "run python -m tests.live.browser.pictures"
