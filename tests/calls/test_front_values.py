"""What the home page shows beside its cards: read from what is kept, and from nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.calls.parts import START, engine, number_source
from toolserver.calls.front_values import NEWS_OF_ONE, PLACES, FrontReader, FrontValues
from toolserver.calls.live_values import SERIES, LiveValues
from toolserver.context.context import ToolContext
from toolserver.core.models import TopLevel
from toolserver.registry.display import CardValue, DayLine, MarketQuote, Picture
from toolserver.registry.registry import Operation, Registry, operation_of, tool

HOURS = number_source("Test.hours")
ROWS: list[dict[str, Any]] = []


class Rows(TopLevel):
    value: float
    change: float | None
    rows: list[dict[str, Any]]


@tool(path="/api/shown", title="Shown", ttl_s=30, sources=(HOURS,))
async def shown(ctx: ToolContext) -> Rows:
    """Rows of a test."""
    read = await ctx.read(HOURS)
    return Rows(value=read.value, change=-1.5, rows=list(ROWS))


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def hours(number: Any) -> Sequence[tuple[datetime, float]]:
    return [(START - timedelta(hours=back), number.value + back) for back in (30, 24, 2, 1)]


DAYS = (DayLine(number_source("Test.never_read"), None, hours), DayLine(HOURS, None, hours))
MAP = Picture("map", "Places", rows="rows", values=("size",), label="name", time="at", unit="M", legend="Quakes")
GRID = Picture("grid", "States", rows="rows", values=("state",), label="name")
QUOTES = (MarketQuote("{rows.0.name}, half", "value", "$", "change", DAYS), MarketQuote("Missing", "none"))


def made(*pictures: Picture) -> Operation:
    card = CardValue("value", "$", change="change", days=DAYS, quotes=QUOTES)
    return replace(operation_of(shown), headline=card, pictures=pictures)


async def read(operation: Operation, *rows: dict[str, Any]) -> tuple[FrontValues, int]:
    """What the front shows after one answer with these rows, and how often an upstream was asked for it."""
    ROWS[:] = rows
    registry = Registry([operation])
    async with engine(registry) as e:
        e.internet.serves("https://test.example/Test.hours", {"value": 5})
        live = LiveValues(registry, e.answers)
        front = FrontReader(live, e.cache)
        empty = await front.read()
        assert [card["value"] for card in empty.cards] == [None]
        assert (empty.places, empty.states, empty.news) == ([], [], [])
        assert await live.fill(within_s=5) == 0
        asked = len(e.internet.asked)
        values = await front.read()
        assert await front.read() == values
        return values, len(e.internet.asked) - asked


async def test_the_page_of_a_tool_gets_the_past_day_of_each_figure_with_its_times():
    ROWS[:] = [{"name": "Half"}]
    registry = Registry([made()])
    async with engine(registry) as e:
        e.internet.serves("https://test.example/Test.hours", {"value": 5})
        live = LiveValues(registry, e.answers)
        front = FrontReader(live, e.cache)
        assert json.loads(await front.read_answer("shown") or b"{}")["lines"] == []
        assert await live.fill(within_s=5) == 0
        asked = len(e.internet.asked)
        read = json.loads(await front.read_answer("shown") or b"{}")
        assert len(e.internet.asked) == asked
    begin = int(START.timestamp())
    points = [[begin - hours * 3600, 5.0 + hours] for hours in (24, 2, 1)]
    (line,) = read["lines"]
    assert line == {"label": "Half, half", "unit": "$", "points": points, "week": [], "month": [], "seen": False}
    assert read["answer"]["value"] == 5.0


async def test_a_source_that_keeps_more_than_a_day_gives_the_past_week_too():
    def many(number: Any) -> Sequence[tuple[datetime, float]]:
        return [(START - timedelta(hours=back), float(back)) for back in range(200, 0, -1)]

    operation = replace(made(), headline=CardValue("value", "m", days=(DayLine(HOURS, None, many),)))
    registry = Registry([operation])
    async with engine(registry) as e:
        e.internet.serves("https://test.example/Test.hours", {"value": 5})
        live = LiveValues(registry, e.answers)
        assert await live.fill(within_s=5) == 0
        (line,) = json.loads(await FrontReader(live, e.cache).read_answer("shown") or b"{}")["lines"]
    assert [value for _, value in line["points"]] == [float(back) for back in range(25, 0, -1)]
    assert [value for _, value in line["week"]] == [float(back) for back in range(169, 0, -1)]
    assert (START.timestamp() - line["week"][0][0]) / 3600 == 169


@pytest.mark.parametrize("since_newest", [timedelta(hours=12), timedelta(minutes=30)])
async def test_a_source_of_one_value_a_day_gives_the_past_month_and_its_query_may_depend_on_the_day(since_newest):
    def daily(number: Any) -> Sequence[tuple[datetime, float]]:
        return [(START - timedelta(days=back) - since_newest, float(back)) for back in range(50, -1, -1)]

    asked_at: list[datetime] = []
    day = DayLine(HOURS, asked_at.append, daily)
    operation = replace(made(), headline=CardValue("value", "m", days=(day,)))
    registry = Registry([operation])
    async with engine(registry) as e:
        e.internet.serves("https://test.example/Test.hours", {"value": 5})
        live = LiveValues(registry, e.answers)
        assert await live.fill(within_s=5) == 0
        (line,) = json.loads(await FrontReader(live, e.cache).read_answer("shown") or b"{}")["lines"]
    assert (line["points"], line["week"], line["seen"]) == ([], [], False)
    assert [value for _, value in line["month"]] == [float(back) for back in range(30, -1, -1)]
    assert set(asked_at) == {START}


async def test_what_this_service_has_seen_for_an_hour_stands_in_where_no_source_keeps_a_day():
    operation = replace(made(), headline=CardValue("value", "m"))
    registry = Registry([operation])
    async with engine(registry) as e:
        live = LiveValues(registry, e.answers)
        front = FrontReader(live, e.cache)
        assert await front.read_answer("none") is None
        history = e.answers.surroundings.history
        for minutes in (0, 1, 59):
            history.note(SERIES, "shown", 5.0 + minutes, START + timedelta(minutes=minutes), keep_s=7200)
        assert json.loads(await front.read_answer("shown") or b"{}")["lines"] == []  # a few minutes are no chart
        history.note(SERIES, "shown", 65.0, START + timedelta(minutes=60), keep_s=7200)
        (line,) = json.loads(await front.read_answer("shown") or b"{}")["lines"]
    assert (line["label"], line["unit"], line["seen"]) == ("Shown", "m", True)
    assert [value for _, value in line["points"]] == [5.0, 6.0, 64.0, 65.0]


async def test_reading_asks_no_upstream_and_a_line_is_the_past_day_of_the_source_that_keeps_one():
    values, asked = await read(made(), {"name": "Half"})
    assert asked == 0
    (card,) = values.cards
    assert (card["value"], card["change_percent"]) == (5.0, -1.5)
    assert card["line"] == [29.0, 7.0, 6.0]  # not the point of 30 hours ago
    first, missing = values.quotes
    assert (first.label, first.value, first.unit, first.change_percent) == ("Half, half", 5.0, "$", -1.5)
    assert first.line == [29.0, 7.0, 6.0]
    assert (missing.label, missing.value, missing.change_percent, missing.line) == ("Missing", None, None, [])


async def test_a_line_is_of_the_source_that_the_answer_is_from_even_if_another_keeps_a_day():
    other = number_source("Test.other")
    days = (DayLine(other, None, hours), DayLine(HOURS, None, hours))
    operation = replace(made(), headline=CardValue("value", "m", days=days))
    registry = Registry([operation])
    async with engine(registry) as e:
        for address, value in (("Test.hours", 5), ("Test.other", 100)):
            e.internet.serves(f"https://test.example/{address}", {"value": value})
        await e.cache.fresh(other, None, sla_s=60)
        live = LiveValues(registry, e.answers)
        assert await live.fill(within_s=5) == 0
        front = FrontReader(live, e.cache)
        (card,) = (await front.read()).cards
        (line,) = json.loads(await front.read_answer("shown") or b"{}")["lines"]
        assert card["line"] == [29.0, 7.0, 6.0] == [value for _, value in line["points"]]
        assert (await front.read_card("shown") or {})["line"] == [29.0, 7.0, 6.0]


async def test_rows_with_a_place_stand_on_the_map_with_their_share_of_the_greatest():
    rows = [{"name": f"at {size}", "lat": 1.0, "lon": 2.0, "size": size, "at": at(-size)} for size in (2, 6, 4)]
    odd = [{"name": "no place", "lat": None, "lon": 2.0, "size": 9}, {"name": "words", "lat": "1", "lon": 2, "size": 9}]
    values, _ = await read(made(MAP), *rows, *odd)
    assert [(place.label, place.share) for place in values.places] == [("at 6", 1.0), ("at 4", 0.5), ("at 2", 0.0)]
    assert {(place.layer.kind, place.layer.unit, place.lat, place.lon) for place in values.places} == {
        ("Quakes", "M", 1.0, 2.0)
    }


async def test_the_map_has_at_most_so_many_places_of_one_tool_and_they_are_the_greatest():
    rows = [{"name": "x", "lat": 1, "lon": 2, "size": size, "at": None} for size in range(PLACES + 9)]
    values, _ = await read(made(MAP), *rows)
    assert [place.value for place in values.places] == list(range(PLACES + 8, 8, -1))


async def test_the_list_has_the_next_event_and_then_the_newest_and_no_tool_fills_it_alone():
    rows = [{"name": str(minutes), "lat": 1, "lon": 2, "size": 3, "at": at(minutes)} for minutes in range(-9, 9)]
    rows.append({"name": "a date alone", "lat": 1, "lon": 2, "size": 3, "at": "2027-01-15"})
    values, _ = await read(made(MAP), *rows)
    assert [place.label for place in values.news] == ["1", "0", "-1", "-2", "-3", "-4"]
    assert NEWS_OF_ONE == 5


async def test_states_are_the_words_of_the_rows():
    values, _ = await read(made(GRID), {"name": "A", "state": "operational"}, {"name": "B", "state": None})
    assert [(one.name, one.state) for one in values.states] == [("A", "operational"), ("B", "unknown")]


async def test_filling_gives_up_in_time_and_says_how_many_cards_are_empty():
    registry = Registry([made()])
    async with engine(registry) as e:
        live = LiveValues(registry, e.answers)
        assert await live.fill(within_s=0) == 1
