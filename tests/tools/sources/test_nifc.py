"""NIFC's incidents."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.nifc  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.fires import incidents
from tools.sources.nifc import INCIDENTS, Incident, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceError, SourceLimited
from toolserver.world import answers
from toolserver.world.model import Edits, World

ROW = {
    "IncidentName": "Dragon Bravo",
    "IncidentSize": 145504.5,
    "PercentContained": 63,
    "POOState": "US-AZ",
    "POOCounty": "Coconino",
    "FireDiscoveryDateTime": 1_751_673_600_000,
    "ModifiedOnDateTime_dt": 1_752_000_000_000,
}


def body(*rows):
    return {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": row} for row in rows]}


def test_the_request_asks_for_the_largest_wildfires():
    params = INCIDENTS.request.params
    assert params["where"] == "IncidentTypeCategory='WF'"
    assert (params["orderByFields"], params["resultRecordCount"], params["f"]) == ("IncidentSize DESC", "50", "geojson")


def test_an_incident_is_read_with_the_state_by_its_letters():
    assert parse(body(ROW), None) == (
        Incident(
            "Dragon Bravo",
            "AZ",
            "Coconino",
            145504.5,
            63,
            datetime(2025, 7, 5, tzinfo=UTC),
            datetime(2025, 7, 8, 18, 40, tzinfo=UTC),
        ),
    )


def test_what_has_not_been_reported_is_none():
    empty = dict.fromkeys(ROW)
    found = parse(body(empty | {"IncidentName": "Sheep"}, empty, ROW | {"PercentContained": 101}), None)
    assert found[0] == Incident("Sheep", None, None, None, None, None, None)
    assert [incident.name for incident in found] == ["Sheep", "Dragon Bravo"]
    assert found[1].contained_percent is None


@given(st.lists(st.integers(1, 10**6), max_size=50))
def test_no_incident_is_invented_or_dropped(sizes):
    found = parse(body(*(ROW | {"IncidentSize": size} for size in sizes)), None)
    assert [incident.acres for incident in found] == sizes


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"features": None},
        body(ROW | {"FireDiscoveryDateTime": 0}),
        body(ROW | {"IncidentSize": "large"}),
        body({k: v for k, v in ROW.items() if k != "IncidentSize"}),
    ],
)
def test_anything_else_is_refused(wrong):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(wrong, None)


def test_an_error_inside_200_is_one():
    with pytest.raises(SourceChanged, match="Unable to complete"):
        ask(INCIDENTS, form="error200")
    with pytest.raises(SourceLimited):
        ask(INCIDENTS, form="limited")
    assert ask(INCIDENTS, form="empty") == ()


def test_the_twin_lists_the_largest_fires_of_the_world():
    event = {"kind": "fire", "at": NOW - 60, "name": "Test", "acres": 999999, "contained": 5, "state": "OR"}
    known = incidents(World(1, NOW))
    found = ask(INCIDENTS)
    assert [(i.name, i.state, i.acres) for i in found] == [(k.name, k.state, k.acres) for k in known]
    assert len(found) == 20
    first = ask(INCIDENTS, world=World(1, NOW, Edits(events=[event])))[0]
    assert (first.name, first.state, first.acres, first.contained_percent) == ("Test", "OR", 999999, 5)


def test_what_is_not_the_document_is_refused_and_other_forms_of_it_are_read():
    asked = INCIDENTS.request
    reply = fetch(World(1, NOW), asked)
    told = parse_body(INCIDENTS, asked, None, reply.body)
    zeros = answers.zeros(reply, NOW).body
    for wrong in (b"", b"<html></html>", reply.body[:900], zeros, answers.drift(reply, "renamed").body):
        with pytest.raises(SourceError):
            parse_body(INCIDENTS, asked, None, wrong)
    for form in ("extra", "strings", "bom"):
        assert parse_body(INCIDENTS, asked, None, answers.drift(reply, form).body) == told
