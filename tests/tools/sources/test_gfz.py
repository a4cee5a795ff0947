"""GFZ Potsdam's Kp."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.gfz  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.kp_index import KpReading
from tools.simulated.sun import kp
from tools.sources.gfz import KP_INDEX, KpWindow, parse, request
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world import answers
from toolserver.world.model import World

T = datetime.fromtimestamp(NOW, UTC)
DAY = KpWindow(T.replace(microsecond=999_999))


def test_the_request_has_no_fractions_of_seconds_and_no_part_in_the_cache_key():
    asked = request(DAY, {})
    assert asked.params == {"start": "2027-01-14T08:00:00Z", "end": "2027-01-15T08:00:00Z", "index": "Kp"}
    assert KP_INDEX.key(DAY) == KP_INDEX.key(KpWindow(T))


values = st.lists(st.one_of(st.none(), st.integers(0, 27).map(lambda thirds: round(thirds / 3, 3))), max_size=8)


@given(values)
def test_no_value_is_invented_and_only_unpublished_ones_are_dropped(values):
    times = [f"2027-01-14T{3 * i:02}:00:00Z" for i in range(len(values))]
    known = [value for value in values if value is not None]
    if not any(known):
        with pytest.raises((SourceEmpty, SourceChanged)):
            parse({"datetime": times, "Kp": values, "status": []}, DAY)
    else:
        assert [reading.kp for reading in parse({"datetime": times, "Kp": values}, DAY)] == known


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"message": "Dateformat is not correct"},
        {"datetime": ["2027-01-14T00:00:00Z"], "Kp": []},
        {"datetime": ["2027-01-14T00:00:00Z"], "Kp": [9.5]},
        {"datetime": [None], "Kp": [3]},
    ],
)
def test_anything_else_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, DAY)


def test_the_twin_has_the_same_kp_as_the_world_but_for_the_period_under_way():
    world = World(1, NOW)
    found = ask(KP_INDEX, DAY)
    assert found[-1].time == datetime(2027, 1, 15, 3, tzinfo=UTC)
    assert len(found) == 7
    assert list(found) == [KpReading(r.time, round(kp(world, r.time.timestamp()), 3)) for r in found]


def test_faults_of_the_twin_are_errors():
    asked = request(DAY, {})
    reply = fetch(World(1, NOW), asked)
    with pytest.raises(SourceEmpty):
        ask(KP_INDEX, DAY, form="empty")
    for wrong in (
        b"",
        b"<html></html>",
        reply.body[:200],
        fetch(World(1, NOW), asked, form="error200").body,
        answers.zeros(reply, NOW).body,
        answers.drift(reply, "renamed").body,
    ):
        with pytest.raises(SourceError):
            parse_body(KP_INDEX, asked, DAY, wrong)
    for form in ("extra", "strings"):
        assert parse_body(KP_INDEX, asked, DAY, answers.drift(reply, form).body) == ask(KP_INDEX, DAY)
