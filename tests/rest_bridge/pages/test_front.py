"""The changing part of the home page: what each value looks like, and when a browser fetches it anew."""

from datetime import UTC, datetime, timedelta

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.pages.front import (
    BEGIN,
    END,
    change,
    draw_front,
    draw_mark,
    figure,
    front_handlers,
    moment,
    part_of_note,
    sparkline,
)
from rest_bridge.pages.home import home
from rest_bridge.static_files import read_static_files, static_path
from tests.catalog.tiny import FACTS
from tests.rest_bridge.made import PROJECT
from tests.rest_bridge.markup import Page
from toolserver.calls.front_values import FrontLayer, FrontPlace, FrontQuote, FrontState, FrontValues
from toolserver.clock import ManualClock
from toolserver.registry.site_facts import FRONT, HTML, Document

NOW = datetime(2026, 11, 28, 5, tzinfo=UTC)
HOSTILE = '<img src=x onerror="alert(1)">'


def card(tool="btc_price", **more):
    empty = {"value": None, "note": [], "change_percent": None, "sources": [], "updated_at": None, "stale": None}
    return {"tool": tool, "unit": "$", **empty, "line": [], **more}


def layer(kind="Earthquakes"):
    return FrontLayer("earthquakes", kind, "circle", "M")


def place(**more):
    fields = {"layer": layer(), "label": "here", "lat": 1.0, "lon": 2.0, "value": 5.0, "share": 1.0, "at": NOW}
    return FrontPlace(**(fields | more))


def drawn(**values):
    return str(draw_front(PROJECT, FACTS, FrontValues(NOW, **values)))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (101223.16, "$", "$101,223.16"),
        (1300, "$", "$1,300.00"),
        (-5, "$", "-$5.00"),
        (0.00012, "$", "$0.00012"),
        (4.01, "%", "4.01 %"),
        (113.0, "", "113"),
        (0.86133, "EUR", "0.86133 EUR"),
        (1.23456, "", "1.2346"),
        (None, "$", "–"),
        ("<b>", "", "<b>"),
    ],
)
def test_a_figure_is_written_as_in_english_and_carries_its_number(value, unit, text):
    page = Page(str(figure(value, unit)).encode())
    assert (page.text, page.faults) == (text, [])
    assert ("data" in page.names) == isinstance(value, int | float)


def test_up_and_down_differ_by_sign_arrow_and_word_as_well_as_by_colour():
    assert [Page(str(change(percent)).encode()).text for percent in (1.5, -1.5, 0, None)] == [
        "▲up +1.50 %",
        "▼down -1.50 %",
        "→unchanged +0.00 %",
        "",
    ]


def test_a_line_has_the_points_that_are_there_and_fewer_than_three_make_none():
    assert sparkline([1, None, 2], "x") == ""
    line = sparkline([1, None, 2, 3], "Bitcoin")
    assert 'd="M0 28L50 15L100 2"' in line
    assert 'aria-label="Bitcoin: 3 values from 1 to 3"' in line
    assert "rise" in line
    assert "fall" in sparkline([3, 2, 1], "")
    assert "flat" in sparkline([2, 2, 2], "")


def test_a_moment_is_a_time_that_the_page_turns_into_an_age():
    assert 'datetime="2026-11-28T05:00:00Z"' in moment(NOW)
    assert Page(str(moment(NOW)).encode()).text == "05:00 UTC"
    assert part_of_note("2026-11-28T05:00:00Z") == moment("2026-11-28T05:00:00Z")
    assert part_of_note("at 2026") == "at 2026"


@pytest.mark.parametrize(("age", "word"), [(0, "new"), (3, "recent"), (7, "old"), (-0.5, "new")])
def test_a_mark_fades_with_its_age(age, word):
    assert f"circle {word}" in draw_mark(place(at=NOW - timedelta(hours=age)), NOW)


def test_a_mark_grows_with_its_figure_and_stands_where_it_belongs():
    small, large = draw_mark(place(share=0.2)), draw_mark(place())
    assert 'cx="2" cy="-1" r="5.2"' in large
    assert 'r="0.93"' in small
    assert "Earthquakes · M 5 · here" in large


def test_a_missing_and_a_stale_value_look_different_from_a_fresh_one():
    fresh = drawn(cards=[card(value=5, updated_at="2026-11-28T04:59:00Z", stale=False, sources=["A", "B"])])
    assert "04:59 UTC" in fresh
    assert 'title="A, B">A +1<' in fresh.replace("\n", "")
    stale = drawn(cards=[card(value=5, updated_at="2026-11-28T04:59:00Z", stale=True)])
    assert 'class="card stale" id="card-btc_price"' in stale
    assert '<span class="badge">stale</span>' in stale
    assert 'class="card missing" id="card-btc_price"' in drawn(cards=[card()])
    assert 'class="card" id="card-btc_price"' in fresh


def test_a_page_says_how_many_cards_wait_for_a_value():
    count = len([one for one in PROJECT.listed if one.headline])
    assert f'data-waiting="{count}"' in drawn()
    assert f'data-waiting="{count - 1}"' in drawn(cards=[card(value=5)])


def test_what_comes_from_elsewhere_is_text():
    front = drawn(
        cards=[card(value=HOSTILE, note=[HOSTILE], sources=[HOSTILE])],
        quotes=[FrontQuote("btc_price", HOSTILE, 5, "$", 1, False, [1, 2, 3])],
        places=[place(label=HOSTILE, layer=layer(HOSTILE))],
        news=[place(label=HOSTILE, layer=layer(HOSTILE))],
        states=[FrontState("service_status", HOSTILE, HOSTILE)],
    )
    page = Page(front.encode())
    assert page.faults == []
    assert "img" not in page.names
    assert page.text.count(HOSTILE) >= 7


def test_services_in_trouble_are_counted_and_named_in_words():
    names = ("operational", "degraded", "major_outage", "unknown")
    text = Page(drawn(states=[FrontState("service_status", name, name) for name in names]).encode()).text
    assert "Trouble at 2 of 3, by their own status pages; 1 did not answer" in text
    calm = Page(drawn(states=[FrontState("service_status", "a", "operational")]).encode()).text
    assert "No trouble at any of 1, by their own status pages" in calm
    assert "○ unknown unknown" in " ".join(text.split())
    assert "▲ degraded degraded" in " ".join(text.split())
    assert "■ major_outage major outage" in " ".join(text.split())


def test_the_coastline_is_that_of_the_other_maps_and_a_file_of_its_own():
    land, other = read_static_files()["land.svg"].body.decode(), read_static_files()["js/world.js"].body.decode()
    coast = land.partition(' d="')[2].partition('"')[0]
    assert len(coast) > 10_000
    assert f'"{coast}"' in other
    page = home(PROJECT, FACTS).body.decode() + drawn(places=[place()])
    assert coast not in page
    assert f'href="{static_path("land.svg")}#land"' in page


class Reader:
    """Values of a test, and how often they were read."""

    def __init__(self):
        self.value, self.reads = 5, 0

    async def read(self):
        self.reads += 1
        return FrontValues(NOW, [card(value=self.value, updated_at="2026-11-28T04:59:00Z", stale=False)])


async def ask(handler, **headers):
    scope = {"headers": [(k.encode(), v.encode()) for k, v in headers.items()], "query_string": b""}
    return await handler(scope, parse_request(scope))


async def test_the_page_has_its_values_when_it_arrives_and_a_browser_that_has_them_gets_304():
    reader, clock = Reader(), ManualClock(NOW)
    handlers = front_handlers(PROJECT, FACTS, reader, clock, lambda: home(PROJECT, FACTS))
    page, part = await ask(handlers["/"]), await ask(handlers[FRONT])
    assert b"$5.00" in page.body
    assert part.body in page.body
    assert BEGIN not in page.body
    assert END not in page.body
    assert reader.reads == 1  # one reading for both, and for all who ask in this second

    for path in ("/", FRONT):
        tag = dict((await ask(handlers[path])).headers)[b"etag"].decode()
        clock.advance(2)
        assert (await ask(handlers[path], **{"if-none-match": tag})).status == 304
        reader.value += 1
        clock.advance(2)
        assert (await ask(handlers[path], **{"if-none-match": tag})).status == 200


async def test_a_service_without_cards_serves_its_page_as_it_is():
    empty = Document(b"<p>nothing that changes</p>", HTML)
    handlers = front_handlers(PROJECT, FACTS, Reader(), ManualClock(NOW), lambda: empty)
    assert (await ask(handlers["/"])).body == empty.body


def test_a_word_of_a_source_may_break_after_its_underscores():
    assert figure("malware_download<b>") == "malware_<wbr>download&lt;b&gt;"
