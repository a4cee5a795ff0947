"""NASA EONET's open events."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.eonet  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.eonet import only_here
from tools.sources.eonet import EVENTS, newest, parse
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

SEEN = {"date": "2026-07-20T06:00:00Z", "type": "Point", "coordinates": [10.0, 20.0]}
EVENT = {"id": "E1", "title": "Storm", "categories": [{"id": "severeStorms"}], "sources": [], "geometry": [SEEN]}


def test_recorded_events_parse_to_their_values(sample):
    raw = json.loads(sample("nasa-eonet/events-v3-2026-07.json"))
    found = parse(raw, None)
    assert [e.id for e in found] == [e["id"] for e in raw["events"]]
    first = found[0]
    assert (first.title, first.categories, first.origins) == ("Tropical Storm Fausto", ("severeStorms",), ("JTWC",))
    assert first.seen_at == datetime(2026, 7, 20, 6, tzinfo=UTC)
    assert first.started_at < first.seen_at
    assert (first.lat, first.lon, first.magnitude, first.unit) == (12.7, -115.2, 45, "kts")
    assert newest(found) == max(e.seen_at for e in found)


def test_a_polygon_is_placed_at_its_first_corner():
    corners = {"type": "Polygon", "coordinates": [[[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]]}
    (found,) = parse({"events": [EVENT | {"geometry": [SEEN | corners]}]}, None)
    assert (found.lat, found.lon) == (2.0, 1.0)


@given(st.permutations([f"2026-07-{day:02}T00:00:00Z" for day in range(1, 9)]))
def test_the_newest_observation_is_found_in_any_order(dates):
    (found,) = parse({"events": [EVENT | {"geometry": [SEEN | {"date": d} for d in dates]}]}, None)
    assert (found.started_at.day, found.seen_at.day) == (1, 8)


@given(st.lists(st.integers(0, 10**6)))
def test_no_event_is_invented_or_dropped(numbers):
    body = {"events": [EVENT | {"id": f"E{n}"} for n in numbers]}
    assert [e.id for e in parse(body, None)] == [f"E{n}" for n in numbers]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"events": None},
        {"events": [{}]},
        {"events": [EVENT | {"geometry": []}]},
        {"events": [EVENT | {"geometry": [SEEN | {"coordinates": [10, 95]}]}]},
        {"events": [EVENT | {"geometry": [SEEN | {"date": "now"}]}]},
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError)):
        parse(body, None)


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_lists_what_only_it_has_in_both_forms(form):
    found = {e.id: e for e in ask(EVENTS, form=form)}
    for told in only_here(World(1, NOW)):
        event = found[told["id"]]
        assert (event.title, event.url) == (told["title"], told["sources"][0]["url"])
        assert event.magnitude == told["geometry"][-1]["magnitudeValue"]
    assert any("GDACS" in e.origins for e in found.values())
