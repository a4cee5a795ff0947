"""Slack's status page, where "active" is bad news."""

import json

import pytest

import tools.simulated.slack  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.shared.status import PageReading, from_slack
from tools.simulated.incidents import incidents
from tools.sources.slack import SLACK_STATUS, SlackIncident, SlackStatus, parse
from toolserver.upstream.source import SourceChanged, SourceError
from toolserver.world.model import Edits, World


def test_a_recorded_active_page_is_an_incident(sample):
    status = parse(json.loads(sample("slack-status/current-active-2023-09.json")), None)
    assert status == SlackStatus("active", (SlackIncident("Can't dismiss Now you've got Later", "incident"),))
    assert from_slack(status) == PageReading("degraded", "Can't dismiss Now you've got Later")


def test_a_recorded_quiet_page_is_operational(sample):
    assert from_slack(parse(json.loads(sample("slack-status/current-ok-2021-06.json")), None)).status == "operational"


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        (["outage"], "major_outage"),
        (["incident"], "degraded"),
        (["notice"], "operational"),
        (["maintenance"], "maintenance"),
        (["notice", "outage", "incident"], "major_outage"),
        (["something new"], "degraded"),
        ([], "degraded"),
    ],
)
def test_the_worst_incident_decides_and_a_new_kind_is_not_harmless(kinds, status):
    body = {"status": "active", "active_incidents": [{"title": k, "type": k} for k in kinds]}
    assert from_slack(parse(body, None)).status == status


@pytest.mark.parametrize("body", [None, {}, [], {"status": "fine"}, {"status": "active", "active_incidents": [{}]}])
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError)):
        parse(body, None)


def test_an_unknown_status_is_a_change():
    with pytest.raises(SourceChanged):
        parse({"status": "degraded", "active_incidents": []}, None)


def test_the_twin_tells_its_incident_in_both_forms():
    world = World(1, NOW)
    happened = incidents(world, "Slack", NOW - 2 * 86400)[0]

    moment = world.at(happened.began + 60)
    during = ask(SLACK_STATUS, world=moment)
    assert (during.status, [i.title for i in during.incidents]) == ("active", [happened.title])
    assert ask(SLACK_STATUS, world=world.at(happened.ended)) == SlackStatus("ok", ())
    assert ask(SLACK_STATUS, world=moment, form="drift") == during


def test_an_injected_outage_is_a_major_one():
    event = {"kind": "incident", "at": NOW - 60, "page": "Slack", "impact": "critical", "title": "Down"}
    world = World(1, NOW, Edits(events=[event]))
    assert from_slack(ask(SLACK_STATUS, world=world)) == PageReading("major_outage", "Down")
