"""GDACS: the event list and the news feed."""

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.gdacs  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.disasters import disasters
from tools.sources.gdacs import EVENT_LIST, RSS, EventQuery, newest, parse, parse_rss, request
from toolserver.upstream.source import SourceChanged, SourceEmpty, SourceError
from toolserver.world.model import World

TODAY = date(2027, 1, 15)
QUERY = EventQuery("EQ;TC;FL;VO;WF;DR", "Orange;Red", date(2026, 12, 16), TODAY)
PROPERTIES = {
    "eventtype": "FL",
    "eventid": 7,
    "name": "Flood in Here",
    "alertlevel": "Red",
    "fromdate": "2026-07-28T03:34:05",
    "todate": "2026-07-29T00:00:00",
    "iscurrent": "true",
}


def collection(*changes, geometry=None):
    features = [{"properties": PROPERTIES | change, "geometry": geometry} for change in changes]
    return {"type": "FeatureCollection", "features": features}


def test_the_request_names_kinds_colours_and_days():
    assert request(QUERY, {}).params == {
        "eventlist": "EQ;TC;FL;VO;WF;DR",
        "alertlevel": "Orange;Red",
        "fromdate": "2026-12-16",
        "todate": "2027-01-15",
    }
    assert EVENT_LIST.key(QUERY) == EVENT_LIST.key(QUERY._replace(until=date(2027, 1, 16)))


def test_recorded_earthquakes_parse_to_their_values(sample):
    raw = json.loads(sample("gdacs/geteventlist-EQ-2026-07.json"))
    found = parse(raw, QUERY)
    assert [d.id for d in found] == [f["properties"]["eventid"] for f in raw["features"]]
    first = found[0]
    assert (first.kind, first.id, first.name, first.level) == ("EQ", 1554511, "Earthquake in China", "orange")
    assert (first.country, first.severity) == ("China", "Magnitude 5.8M, Depth:10km")
    assert first.started_at == datetime(2026, 7, 28, 3, 34, 5, tzinfo=UTC)
    assert (first.current, first.lat, first.lon) == (True, 35.3866, 99.5513)
    assert first.url == "https://www.gdacs.org/report.aspx?eventid=1554511&episodeid=1721183&eventtype=EQ"


def test_a_recorded_eruption_without_severity_has_none(sample):
    first = parse(json.loads(sample("gdacs/geteventlist-VO-2026-07.json")), QUERY)[0]
    assert (first.name, first.severity, first.current) == ("Eruption Mayon", None, False)


def test_a_recorded_list_that_repeats_events_by_class_gives_each_once(sample):
    raw = json.loads(sample("gdacs/geteventlist-MAP-2026-07-trimmed.json"))
    found = parse(raw, QUERY)
    assert len(raw["features"]) == 25
    assert len(found) == len({(d.kind, d.id) for d in found}) == 11
    assert all(d.lat is not None for d in found)


@pytest.mark.parametrize("name", ["rss.xml", "rss_24h.xml"])
def test_a_recorded_feed_gives_every_event_once(sample, name):
    body = sample(f"gdacs/{name}")
    found = parse_rss(body, None)
    assert len(found) == len({(d.kind, d.id) for d in found}) == body.count(b"<item>")


def test_a_recorded_item_parses_to_its_values(sample):
    first = parse_rss(sample("gdacs/rss.xml"), None)[0]
    assert (first.kind, first.id, first.level, first.country) == ("TC", 1000643, "green", "Mauritius")
    assert first.name.startswith("Green alert for tropical cyclone CALVINIA-19.")
    assert first.severity == "Tropical Storm (maximum wind speed of 93 km/h)"
    assert first.started_at == datetime(2019, 12, 29, 12, tzinfo=UTC)
    assert (first.lat, first.lon, first.current) == (-19.4, 59.8, True)


@given(st.lists(st.integers(1, 10**7)))
def test_no_event_is_invented_or_dropped_but_repetitions(numbers):
    assert [d.id for d in parse(collection(*({"eventid": n} for n in numbers)), QUERY)] == list(dict.fromkeys(numbers))


@pytest.mark.parametrize(
    "change",
    [{"alertlevel": "Purple"}, {"todate": "later"}, {"iscurrent": None}, {"url": None}, {"severitydata": None}],
)
def test_an_optional_member_that_cannot_be_read_does_not_lose_the_event(change):
    (found,) = parse(collection(change), QUERY)
    assert found.name == "Flood in Here"


def test_a_name_may_be_missing_where_a_description_is_not():
    (found,) = parse(collection({"name": "", "description": "Flood"}), QUERY)
    assert found.name == "Flood"


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"type": "FeatureCollection"},
        {"type": "x", "features": []},
        collection({"eventid": "x"}),
        collection({"fromdate": None}),
        collection({}, geometry={"type": "Point", "coordinates": [0, 99]}),
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, QUERY)


@pytest.mark.parametrize(
    ("text", "said"),
    [("Magnitude 0 ", None), ("magnitude 0.0", None), ("Magnitude 0.5M", "Magnitude 0.5M"), ("", None)],
)
def test_a_magnitude_of_zero_says_nothing_of_a_flood(text, said):
    (found,) = parse(collection({"severitydata": {"severity": 0.0, "severitytext": text, "severityunit": ""}}), QUERY)
    assert found.severity == said


def test_a_recorded_flood_has_no_magnitude(sample):
    body = json.loads(sample("gdacs/geteventlist-MAP-2026-07-trimmed.json"))
    floods = [disaster for disaster in parse(body, QUERY) if disaster.kind == "FL"]
    assert floods
    assert {flood.severity for flood in floods} == {None}


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"<rss/>", b"<rss><channel><item/></channel></rss>", b"{}"])
def test_a_feed_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, ValueError)):
        parse_rss(body, None)


def test_a_feed_without_items_is_no_calm_world():
    with pytest.raises(SourceEmpty):
        ask(RSS, form="empty")
    with pytest.raises(SourceChanged):
        parse_rss(b"<rss></rss>", None)


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_list_of_the_twin_holds_the_grave_events_of_the_world(form):
    found = ask(EVENT_LIST, QUERY, form=form)
    since = datetime(2026, 12, 16, tzinfo=UTC).timestamp()
    expected = [d for d in disasters(World(1, NOW), since) if d.level != "Green"]
    assert [(d.kind, d.id) for d in found] == [(d.kind, d.number) for d in expected]
    assert newest(found).timestamp() == expected[0].began
    assert "orange" in {d.level for d in found}


def test_the_feed_of_the_twin_tells_the_same_events_as_its_list():
    listed = {(d.kind, d.id): d for d in ask(EVENT_LIST, QUERY)}
    fed = [d for d in ask(RSS) if d.level != "green"]
    assert fed
    for disaster in fed:
        twin = listed[disaster.kind, disaster.id]
        assert disaster._replace(name="", url=None) == twin._replace(name="", url=None)


def test_an_empty_list_is_left_to_whoever_asks_both_questions():
    assert ask(EVENT_LIST, QUERY, form="empty") == ()
