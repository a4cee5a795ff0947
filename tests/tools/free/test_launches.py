"""The launches tool."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest

import tools.simulated.launch_library
import tools.simulated.rocketlaunch_live  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.free.launches import launches
from tools.shared.launches import FLOWN, upcoming
from tools.shared.launches import launches as fallbacks_of_launches
from tools.simulated.spaceflight import launches as planned
from tools.sources.launch_library import LAUNCHES
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, World

LL2, RLL = "LaunchLibrary.upcoming_launches", "RocketLaunchLive.next_launches"
TIME = datetime.fromtimestamp(NOW, UTC)


async def test_launches_come_soonest_first_and_equal_the_world(compose):
    made = await compose(launches)

    expected = ROUTES.expectations["launches"](World(1, NOW), {})
    assert [{k: x[k] for k in ("id", "name", "provider", "status_code")} for x in made.json] == expected
    assert len(expected) == 10
    times = [x["scheduled_time"] for x in made.json]
    assert times == sorted(times)
    assert not {x["status"] for x in made.json} & set(FLOWN)
    assert not made.notes.warnings


async def test_when_launch_library_is_down_the_status_claims_nothing(compose):
    made = await compose(launches, down={LL2})

    assert 1 <= len(made.json) <= 5
    assert {(x["status"], x["status_code"]) for x in made.json} == {("Scheduled", None)}
    for launch in made.json:
        assert launch["date_text"]
        assert (launch["scheduled_time"] is None) == (launch["time_precision"] == "unknown")
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_a_flown_launch_of_the_fallback_is_left_out(compose):
    made = await compose(launches, down={LL2}, forms={RLL: "drift"})
    assert len(made.json) == 5


@pytest.mark.parametrize("faults", [{"down": {"*"}}, {"forms": {LL2: "empty", RLL: "empty"}}])
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(launches, **faults)


async def test_the_older_form_without_vehicles_makes_the_same_list(compose):
    usual = await compose(launches)
    made = await compose(launches, forms={LL2: "drift"})
    assert made.json == [x | {"vehicle": None, "lat": None, "lon": None} for x in usual.json]


async def test_a_launch_has_the_place_of_its_pad_and_the_fallback_has_none(compose):
    known = {launch.id: (launch.lat, launch.lon) for launch in planned(World(1, NOW))}
    made = await compose(launches)
    assert {x["id"]: (x["lat"], x["lon"]) for x in made.json}.items() <= known.items()
    fallen = await compose(launches, down={LL2})
    assert {(x["lat"], x["lon"]) for x in fallen.json} == {(None, None)}


async def test_the_second_source_waits_for_a_first_one_that_is_only_slow():
    asked = []

    class Reader:
        async def read(self, source, query=None):
            asked.append(source.name)

    _, fallback = fallbacks_of_launches(TIME)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fallback, Reader())
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert asked == []


def test_only_launches_ahead_are_upcoming_and_those_without_a_time_come_last():
    one, two, three, *_ = (x for x in ask(LAUNCHES) if x.net > TIME)
    listed = [
        one._replace(id="none", net=None),
        two._replace(id="late", net=TIME - timedelta(seconds=1)),
        two._replace(id="held", net=TIME - timedelta(minutes=5), status="On Hold", status_code="Hold"),
        two._replace(id="held long ago", net=TIME - timedelta(hours=1), status="On Hold", status_code="Hold"),
        two._replace(id="today", net=TIME.replace(hour=0, minute=0), precision="day"),
        two._replace(id="yesterday", net=TIME - timedelta(days=1), precision="day"),
        three._replace(id="this month", net=TIME.replace(day=1), precision="month"),
        three._replace(id="last month", net=TIME - timedelta(days=31), precision="month"),
        three._replace(id="flown", status="Launch Successful", status_code="Success"),
        three._replace(id="failed", status="Launch Failure", status_code="Failure"),
        one._replace(id="next"),
    ]
    assert [x.id for x in upcoming(listed, TIME)] == ["this month", "today", "held", "next", "none"]
