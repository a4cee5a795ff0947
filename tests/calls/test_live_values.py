"""The cards of the home page: what is kept, refreshed while somebody looks, and never an upstream asked by a reader."""

import json
from dataclasses import replace

import anyio

from tests.calls.parts import engine
from tests.calls.toy import FIRST, REGISTRY, Reading
from toolserver.calls.front_values import FrontReader
from toolserver.calls.live_values import AT_ONCE, EVERY_S, POINTS, WATCHED_S, LiveValues
from toolserver.context.context import ToolContext
from toolserver.registry.display import CardValue
from toolserver.registry.registry import Registry, operation_of, tool

SHOWN = replace(REGISTRY["number"], headline=CardValue("value", "m", "twice {twice}"))
SOLD = replace(REGISTRY["premium_report"], headline=CardValue("one"))
CARDS = Registry([SHOWN, SOLD, REGISTRY["hasty"]])


def live_values(e) -> LiveValues:
    return LiveValues(CARDS, e.answers)


async def refresh(live: LiveValues) -> int:
    """Compose what is due, and wait for it without the pauses of `wait_all_tasks_blocked`."""
    tasks = len(anyio.get_running_tasks())
    begun = live.refresh_due()
    while len(anyio.get_running_tasks()) > tasks:
        await anyio.lowlevel.checkpoint()
    return begun


async def test_a_fresh_server_shows_that_there_is_no_value_yet_and_asks_nobody():
    async with engine(CARDS) as e:
        read = live_values(e).read()
        assert read["generated_at"] == "2027-01-15T08:00:00Z"
        (card,) = read["values"]
        assert (card["tool"], card["value"], card["updated_at"], card["series"]) == ("number", None, None, [])
        assert e.internet.asked == []


async def test_nothing_is_composed_until_somebody_looks_and_ten_minutes_after():
    async with engine(CARDS) as e:
        e.internet.serves(FIRST, {"value": 3})
        live = live_values(e)
        assert await refresh(live) == 0
        live.read()
        assert await refresh(live) == 1
        (card,) = live.read()["values"]
        assert (card["value"], card["unit"], card["note"]) == (3.0, "m", ["twice ", 6.0])
        assert (card["updated_at"], card["stale"]) == ("2027-01-15T08:00:00Z", False)
        e.clock.advance(WATCHED_S + 1)
        assert await refresh(live) == 0
        (card,) = live.read()["values"]
        assert card["value"] == 3.0  # the last one stays, with its age


async def test_the_page_of_a_tool_reads_the_whole_answer_and_so_asks_for_it():
    async with engine(CARDS) as e:
        e.internet.serves(FIRST, {"value": 3})
        live = live_values(e)
        front = FrontReader(live, e.cache)
        empty = json.loads(await front.read_answer("hasty"))
        assert empty == {"tool": "hasty", "generated_at": "2027-01-15T08:00:00Z", "lines": [], "answer": None}
        assert await refresh(live) == 1  # this one alone
        answer = json.loads(await front.read_answer("hasty"))["answer"]
        assert (answer["endpoint"], answer["data"]) == ("hasty", {"value": 3.0, "twice": 6.0})
        assert await front.read_answer("premium_report") is None
        assert await front.read_answer("none") is None


async def test_an_answer_is_composed_anew_when_it_has_expired_and_at_most_once_a_minute():
    async with engine(CARDS) as e:
        e.internet.serves(FIRST, {"value": 3})
        live = live_values(e)
        begun = []
        for seconds in (0, 29, 15, 16, 1, 60):
            e.clock.advance(seconds)
            live.read()
            begun.append(await refresh(live))
        assert begun == [1, 0, 0, 1, 0, 1]
        assert EVERY_S == 60
        assert AT_ONCE > 1


async def test_points_of_a_series_are_values_that_were_there():
    async with engine(CARDS) as e:
        live = live_values(e)
        given = list(range(2 * POINTS + 1))
        for value in given:
            e.internet.serves(FIRST, {"value": value})
            live.read()
            await refresh(live)
            live.read()
            e.clock.advance(EVERY_S + 1)
        series = [value for _, value in live.read()["values"][0]["series"]]
        assert POINTS == 60
        assert series == given[0::3]  # every third, counted from the newest


async def test_values_of_another_thing_each_time_make_no_series():
    other = replace(SHOWN, headline=CardValue("value", is_series=False))
    async with engine(Registry([other])) as e:
        e.internet.serves(FIRST, {"value": 3})
        live = LiveValues(Registry([other]), e.answers)
        live.read()
        await refresh(live)
        (card,) = live.read()["values"]
        assert (card["value"], card["series"]) == (3.0, [])


async def test_a_source_that_is_down_leaves_the_last_value_and_says_that_it_is_stale():
    async with engine(CARDS) as e:
        e.internet.serves(FIRST, {"value": 3})
        live = live_values(e)
        live.read()
        await refresh(live)
        live.read()
        e.internet.serves(FIRST, {"value": "?"})
        e.clock.advance(EVERY_S + 1)
        live.read()
        await refresh(live)
        (card,) = live.read()["values"]
        assert (card["value"], card["stale"]) == (3.0, True)
        assert len(card["series"]) == 1


async def test_a_card_says_when_the_oldest_source_was_read_that_its_value_comes_from():
    async with engine(CARDS) as e:
        e.internet.serves(FIRST, {"value": 3})
        await e.call("number", {"add": 1})
        e.clock.advance(10)
        live = live_values(e)
        live.read()
        await refresh(live)
        assert live.read()["values"] == [
            {
                "tool": "number",
                "unit": "m",
                "value": 3.0,
                "note": ["twice ", 6.0],
                "change_percent": None,
                "sources": ["Test"],
                "updated_at": "2027-01-15T08:00:00Z",
                "stale": False,
                "expires_at": "2027-01-15T08:00:40Z",
                "series": [["2027-01-15T08:00:10Z", 3.0]],
            }
        ]


@tool(path="/api/made", title="Made", ttl_s=30)
async def made(ctx: ToolContext) -> Reading:
    """A value that comes from no source, so that its time is the answer's own; for tests only."""
    return Reading(value=1, twice=2)


async def test_a_value_without_a_source_is_as_old_as_its_answer():
    registry = Registry([replace(operation_of(made), headline=CardValue("value"))])
    async with engine(registry) as e:
        live = LiveValues(registry, e.answers)
        live.read()
        e.clock.advance(5)
        await refresh(live)
        (card,) = live.read()["values"]
        assert (card["value"], card["updated_at"]) == (1.0, "2027-01-15T08:00:05Z")


def test_a_page_is_kept_fresh_for_ten_minutes_six_answers_at_once():
    assert (WATCHED_S, AT_ONCE, EVERY_S) == (600, 6, 60)
