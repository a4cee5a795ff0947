"""Google Cloud's incident history, of which only the open part is news."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.google_cloud  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.shared.status import from_google_cloud
from tools.simulated.incidents import incidents
from tools.sources.google_cloud import GOOGLE_CLOUD_INCIDENTS, MOST_OPEN, newest, parse
from toolserver import SourceChanged, SourceUnproved
from toolserver.upstream.source import SourceError
from toolserver.world.model import Edits, World

SAMPLE = "google-cloud-status/incidents-2026-07.json"


def incident(**changes):
    base = {"id": "a", "begin": "2026-07-15T23:57:00+00:00", "external_desc": "Trouble", "severity": "medium"}
    return {k: v for k, v in (base | changes).items() if v is not ...}


def test_recorded_incidents_that_ended_are_no_news(sample):
    assert parse(json.loads(sample(SAMPLE)), None) == ()


def test_a_recorded_incident_reopened_is_read_with_its_values(sample):
    body = json.loads(sample(SAMPLE))
    del body[0]["end"]
    (found,) = parse(body, None)
    assert (found.id, found.severity, found.service) == ("3BvH3LVGcupoYqV6F4Nw", "medium", "Multiple Products")
    assert found.began_at == datetime(2026, 7, 15, 23, 57, tzinfo=UTC)
    assert found.description.startswith("Google Cloud VMware Engine (GCVE), Google Cloud NetApp Volumes")
    assert from_google_cloud((found,)).status == "degraded"
    assert len(from_google_cloud((found,)).description) <= 200
    assert newest((found,)) == found.began_at


def test_a_history_in_which_nothing_ever_ended_no_longer_says_what_is_open():
    rows = [incident(id=f"i{number}") for number in range(MOST_OPEN + 1)]
    with pytest.raises(SourceChanged, match="no incident of a history has ended"):
        parse(rows, None)
    assert len(parse(rows[:MOST_OPEN], None)) == MOST_OPEN


@given(st.lists(st.sampled_from([..., None, "", "2026-07-16T12:25:00+00:00"]), min_size=1, max_size=MOST_OPEN))
def test_open_means_without_an_end_however_that_is_written(ends):
    found = parse([incident(id=f"i{n}", end=end) for n, end in enumerate(ends)], None)
    assert [i.id for i in found] == [f"i{n}" for n, end in enumerate(ends) if end in (..., None, "")]


@pytest.mark.parametrize(
    ("severities", "status"),
    [([], "operational"), (["low"], "degraded"), (["medium"], "degraded"), (["low", "high"], "partial_outage")],
)
def test_the_worst_open_incident_decides(severities, status):
    over = incident(end="2026-07-16T12:25:00+00:00")
    assert from_google_cloud(parse([*(incident(severity=s) for s in severities), over], None)).status == status


@pytest.mark.parametrize(
    ("impacts", "status"),
    [
        (["SERVICE_INFORMATION"], "operational"),
        (["service_information", "SERVICE_DISRUPTION"], "degraded"),
        (["SERVICE_OUTAGE", "SERVICE_DISRUPTION"], "major_outage"),
    ],
)
def test_the_impact_tells_a_notice_a_disruption_and_an_outage_apart(impacts, status):
    reading = from_google_cloud(parse([incident(status_impact=i, severity="low") for i in impacts], None))
    assert (reading.status, reading.description) == (status, "Trouble")


@pytest.mark.parametrize("severity", [..., None, "odd"])
def test_an_open_incident_of_unknown_severity_is_not_calm(severity):
    assert from_google_cloud(parse([incident(severity=severity)], None)).status == "degraded"


@pytest.mark.parametrize("body", [None, {}, {"error": "x"}, "<html>", [1], [{}], [incident(begin="soon")]])
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, ValueError, TypeError, AttributeError)):
        parse(body, None)


def test_the_twin_tells_open_incidents_in_both_forms():
    world = World(1, NOW)
    happened = incidents(world, "Google Cloud", NOW - 2 * 86400)[0]
    during = world.at(happened.began + 60)

    (found,) = ask(GOOGLE_CLOUD_INCIDENTS, world=during)
    assert found.began_at.timestamp() == happened.began
    assert found.description == f"{happened.title} in europe-west4"
    assert ask(GOOGLE_CLOUD_INCIDENTS, world=during, form="drift") == (found,)
    assert ask(GOOGLE_CLOUD_INCIDENTS, world=world.at(happened.ended)) == ()
    with pytest.raises(SourceUnproved):
        ask(GOOGLE_CLOUD_INCIDENTS, form="empty")


@pytest.mark.parametrize(("impact", "status"), [("critical", "major_outage"), ("maintenance", "operational")])
def test_an_injected_incident_has_its_impact(impact, status):
    event = {"kind": "incident", "at": NOW - 60, "page": "Google Cloud", "impact": impact}
    world = World(1, NOW, Edits(events=[event]))
    assert from_google_cloud(ask(GOOGLE_CLOUD_INCIDENTS, world=world)).status == status
