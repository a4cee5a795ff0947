"""The status pages that share Statuspage's interface."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.desk import NOW, ask, fetch
from tools.shared.status import from_openai, from_statuspage
from tools.simulated.incidents import SERVICES, current, incidents
from tools.simulated.statuspages import FORMER
from tools.sources.statuspage import HOSTS, STATUSPAGES, PageSummary, parse, parse_summary
from toolserver.upstream.source import Get, SourceChanged, SourceError
from toolserver.world.model import Edits, World

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


def test_a_recorded_summary_of_openai_has_its_components(sample):
    summary = parse_summary(json.loads(sample("statuspage/openai-summary-incidentio-2026-07.json")), None)
    assert len(summary.components) == 25
    assert summary.components[18] == ("Embeddings", "operational")
    assert from_openai(summary) == ("operational", "All Systems Operational")


@pytest.mark.parametrize(
    ("troubled", "indicator", "reading"),
    [
        (
            {"Voice mode": "major_outage"},
            "major",
            ("operational", "API operational; the page as a whole: Odd"),
        ),
        (
            {"Files": "degraded_performance", "Realtime": "partial_outage", "Sora": "major_outage"},
            "critical",
            ("partial_outage", "API: Files (degraded performance), Realtime (partial outage)"),
        ),
        ({"Embeddings": "under_maintenance"}, "none", ("maintenance", "API: Embeddings (under maintenance)")),
    ],
)
def test_openai_is_read_by_the_endpoints_of_its_api(sample, troubled, indicator, reading):
    body = json.loads(sample("statuspage/openai-summary-incidentio-2026-07.json"))
    body["status"] = {"indicator": indicator, "description": "Odd"}
    for component in body["components"]:
        component["status"] = troubled.get(component["name"], component["status"])
    assert from_openai(parse_summary(body, None)) == reading


@pytest.mark.parametrize("components", [..., None, [], [{"name": "Login", "status": "operational"}]])
def test_without_endpoints_openai_is_read_by_its_verdict_and_says_so(components):
    body = OK | ({} if components is ... else {"components": components})
    assert from_openai(parse_summary(body, None)) == (
        "operational",
        "The page as a whole: All Systems Operational",
    )


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


@pytest.mark.parametrize(
    ("component", "status"), [("Responses", "partial_outage"), ("Voice mode", "operational"), (None, "partial_outage")]
)
def test_an_incident_of_chatgpt_leaves_the_api_of_openai_operational(component, status):
    event = {"kind": "incident", "at": NOW - 60, "page": "OpenAI", "impact": "major"}
    world = World(1, NOW, Edits(events=[event | ({"component": component} if component else {})]))
    for form in (None, "drift"):
        summary = ask(STATUSPAGES["OpenAI"], world=world, form=form)
        assert summary.indicator == "major"
        assert from_openai(summary).status == status


def test_each_service_has_one_incident_of_forty_minutes_a_day():
    world = World(7, 86400.0 * 20001 - 1)
    for service in SERVICES:
        (incident,) = incidents(world, service, 86400.0 * 20000)
        assert incident.ended - incident.began == 2400


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_some_page_is_degraded_during_a_fifth_of_the_time(seed):
    moments = [World(seed, NOW + 300 * i) for i in range(288)]
    assert sum(any(current(world, s) for s in SERVICES) for world in moments) >= 0.2 * len(moments)
