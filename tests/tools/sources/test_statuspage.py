"""The status pages that share Statuspage's interface."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask, fetch
from tools.shared.status import from_statuspage
from tools.simulated.incidents import SERVICES, current, incidents
from tools.simulated.statuspages import FORMER
from tools.sources.statuspage import HOSTS, STATUSPAGES, PageSummary, parse
from toolserver.upstream.source import Get, SourceChanged, SourceError
from toolserver.world.model import World

OK = {"page": {"id": "x"}, "status": {"indicator": "none", "description": "All Systems Operational"}}


@pytest.mark.parametrize(
    "name", ["github-status-ok-2023-09.json", "claude-status-2026-08.json", "openai-summary-incidentio-2026-07.json"]
)
def test_a_recorded_page_reads_as_operational_whoever_made_it(sample, name):
    summary = parse(json.loads(sample(f"statuspage/{name}")), None)
    assert summary == PageSummary("none", "All Systems Operational")
    assert from_statuspage(summary).status == "operational"


def test_a_recorded_summary_reads_like_the_status_alone(sample):
    body = json.loads(sample("statuspage/claude-summary-2026-09.json"))
    assert parse(body, None) == PageSummary(**body["status"])


@given(
    st.sampled_from(["none", "minor", "major", "critical", "maintenance"]),
    st.text(),
    st.dictionaries(st.sampled_from(["components", "incidents", "extra"]), st.lists(st.integers())),
)
def test_the_indicator_is_kept_whatever_stands_around_it(indicator, description, more):
    body = {**more, "status": {"description": description, "indicator": indicator}}
    assert parse(body, None).indicator == indicator


@pytest.mark.parametrize("indicator", ["operational", "", None, 0, "NONE"])
def test_an_unknown_indicator_is_a_change_not_a_calm_page(indicator):
    with pytest.raises(SourceChanged):
        parse({"status": {"indicator": indicator, "description": "fine"}}, None)


@pytest.mark.parametrize("body", [None, {}, [], {"status": "ok"}, {"page": {}}, "<html>", {"status": {}}])
def test_a_body_without_a_status_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, AttributeError)):
        parse(body, None)


def test_a_description_that_is_missing_is_replaced_by_the_status():
    summary = parse({"status": {"indicator": "minor"}}, None)
    assert from_statuspage(summary).description == "degraded"


@pytest.mark.parametrize(
    ("indicator", "status"),
    [
        ("none", "operational"),
        ("minor", "degraded"),
        ("major", "partial_outage"),
        ("critical", "major_outage"),
        ("maintenance", "maintenance"),
    ],
)
def test_each_indicator_has_its_word(indicator, status):
    assert from_statuspage(PageSummary(indicator, "x")).status == status


def test_every_page_has_its_own_name_and_host():
    assert STATUSPAGES["Zoom"].name == "Statuspage.Zoom"
    assert STATUSPAGES["Zoom"].plan(None, {}).url == "https://www.zoomstatus.com/api/v2/status.json"
    assert len({source.plan(None, {}).url for source in STATUSPAGES.values()}) == 11


@pytest.mark.parametrize("service", FORMER)
def test_a_page_that_has_moved_is_asked_where_it_is_and_leads_away_from_where_it_was(service):
    then = fetch(World(1, NOW), Get(f"https://{FORMER[service]}/api/v2/status.json"))

    assert then.status == 301
    assert then.headers["location"] == STATUSPAGES[service].plan(None, {}).url


@pytest.mark.parametrize("service", HOSTS)
def test_the_twin_tells_the_incident_while_it_lasts_in_both_forms(service):
    world = World(1, NOW)
    happened = incidents(world, service, NOW - 2 * 86400)[0]
    during, after = world.at(happened.began + 60), world.at(happened.ended + 1)

    assert ask(STATUSPAGES[service], world=during).indicator == happened.impact
    assert ask(STATUSPAGES[service], world=during, form="drift").indicator == happened.impact
    assert ask(STATUSPAGES[service], world=after).indicator == "none"


def test_each_service_has_one_incident_of_forty_minutes_a_day():
    world = World(7, 86400.0 * 20001 - 1)
    for service in SERVICES:
        (incident,) = incidents(world, service, 86400.0 * 20000)
        assert incident.ended - incident.began == 2400


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_some_page_is_degraded_during_a_fifth_of_the_time(seed):
    moments = [World(seed, NOW + 300 * i) for i in range(288)]
    assert sum(any(current(world, s) for s in SERVICES) for world in moments) >= 0.2 * len(moments)
