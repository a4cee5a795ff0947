"""AWS Health's current events, in their two-byte encoding."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.aws  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.shared.status import from_aws
from tools.simulated.incidents import incidents
from tools.sources.aws import AWS_EVENTS, parse
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

PLAIN = "aws-health/currentevents-2026-09-trimmed.json"
WIRE = "aws-health/currentevents-2026-09-trimmed-DERIVED-utf16be-bom.json"


def event(**changes):
    return {"date": "1788472198", "status": "2", "service": "ec2", "summary": "Errors"} | changes


def wire(*events):
    return b"\xfe\xff" + json.dumps(events).encode("utf-16-be")


def test_recorded_events_parse_to_their_values_in_the_wire_encoding(sample):
    events = parse(sample(WIRE), None)
    assert events == parse(sample(PLAIN), None)
    assert [e.level for e in events] == [0, 3, 3]
    assert events[0].summary == "[RESOLVED] Increased API Error Rates"
    assert (events[1].region, events[1].service) == ("UAE", "Multiple services")
    assert events[1].began_at == datetime.fromtimestamp(1772369485, UTC)
    reading = from_aws(events)
    assert reading == ("partial_outage", "Multiple services, UAE: Increased Error Rates")


@given(st.lists(st.tuples(st.integers(0, 3), st.text(min_size=1))))
def test_no_event_is_invented_or_dropped(told):
    events = parse(wire(*(event(status=str(level), summary=summary) for level, summary in told)), None)
    assert [e.level for e in events] == [level for level, _ in told]


@pytest.mark.parametrize(
    ("levels", "status"),
    [([], "operational"), ("0", "operational"), ("1", "operational"), ("012", "degraded"), ("231", "partial_outage")],
)
def test_the_worst_current_event_decides(levels, status):
    assert from_aws(parse(wire(*(event(status=level) for level in levels)), None)).status == status


def test_no_event_at_all_is_an_answer():
    assert parse(wire(), None) == ()


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"<html>",
        b"{}",
        wire(event(status="9")),
        wire(event(date="soon")),
        wire({}),
        wire(event())[:-4],
        wire(event())[:-1],
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, ValueError, TypeError, AttributeError)):
        parse(body, None)


def test_the_twin_speaks_utf_16_and_utf_8_alike():
    world = World(1, NOW)
    happened = incidents(world, "AWS", NOW - 2 * 86400)[0]
    during, after = world.at(happened.began + 60), world.at(happened.ended)

    assert fetch(during, AWS_EVENTS.request).body.startswith(b"\xfe\xff")
    (found,) = ask(AWS_EVENTS, world=during)
    assert (found.level, found.summary) == ({"minor": 2, "major": 3}[happened.impact], happened.title)
    assert ask(AWS_EVENTS, world=during, form="drift") == (found,)
    (resolved,) = ask(AWS_EVENTS, world=after)
    assert (resolved.level, resolved.summary) == (0, f"[RESOLVED] {happened.title}")
    assert ask(AWS_EVENTS, form="empty") == ()
