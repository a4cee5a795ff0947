"""NOAA's map of watches, warnings and advisories."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.noaa  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.alerts import in_force
from tools.sources.noaa import WATCH_WARNING_MAP, newest, parse
from toolserver.upstream.source import Get, SourceChanged, SourceDown, SourceEmpty
from toolserver.world.model import World

TIME = datetime.fromtimestamp(NOW, UTC)


def hazard(**changed):
    attributes = {
        "prod_type": "Winter Storm Warning",
        "event": "0004",
        "phenom": "WS",
        "sig": "W",
        "wfo": "KBOU",
        "issuance": "2027-01-15T07:00:00+00:00",
        "onset": "2027-01-15T12:00:00+00:00",
        "ends": "2027-01-16T06:00:00+00:00",
        "expiration": "2027-01-15T20:00:00+00:00",
        "msg_type": "NEW",
        "cap_id": "urn:oid:1",
        "url": "https://alerts.example/1",
    }
    return {"attributes": attributes | changed}


def test_the_query_is_the_documented_one():
    sent = WATCH_WARNING_MAP.request
    assert sent.url.endswith("/WWA/watch_warn_adv/MapServer/1/query")
    assert sent.params["where"] == "1=1"
    rest = [sent.params[name] for name in ("returnGeometry", "resultRecordCount", "f")]
    assert rest == ["false", "2000", "json"]


def test_a_hazard_parses_to_its_values():
    mapped = parse({"features": [hazard()]}, None)
    alert = mapped.alerts[0]
    assert (alert.id, alert.event, alert.significance, alert.office, alert.action) == (
        "urn:oid:1",
        "Winter Storm Warning",
        "W",
        "KBOU",
        "NEW",
    )
    assert alert.issued == datetime(2027, 1, 15, 7, tzinfo=UTC)
    assert alert.ends == datetime(2027, 1, 16, 6, tzinfo=UTC)
    assert alert.expires == datetime(2027, 1, 15, 20, tzinfo=UTC)
    assert mapped.truncated is False
    assert newest(mapped) == alert.issued


@pytest.mark.parametrize("seven", [1_799_996_400_000, "1799996400000", "2027-01-15T07:00:00Z", "2027-01-15 07:00:00"])
def test_times_are_milliseconds_or_iso_text(seven):
    assert parse({"features": [hazard(issuance=seven)]}, None).alerts[0].issued == datetime(2027, 1, 15, 7, tzinfo=UTC)


def test_a_hazard_drawn_twice_counts_once_and_the_first_stays_first():
    body = {"features": [hazard(), hazard(cap_id="urn:oid:2"), hazard(wfo="KPUB")]}
    assert [(a.id, a.office) for a in parse(body, None).alerts] == [("urn:oid:1", "KBOU"), ("urn:oid:2", "KBOU")]


def test_without_an_id_office_kind_and_number_tell_hazards_apart():
    unnamed = [hazard(cap_id=None), hazard(cap_id=None, event="0005"), hazard(cap_id="", event=None, sig=None)]
    body = {"features": unnamed}
    assert [a.id for a in parse(body, None).alerts] == [
        "KBOU.WS.W.0004.2701150700",
        "KBOU.WS.W.0005.2701150700",
        "KBOU.WS.2701150700",
    ]


def test_a_cut_answer_says_so():
    assert parse({"features": [hazard()], "exceededTransferLimit": True}, None).truncated is True


def test_one_of_the_times_is_enough():
    alert = parse({"features": [hazard(issuance=None, expiration=None)]}, None).alerts[0]
    assert alert.issued == datetime(2027, 1, 15, 12, tzinfo=UTC)
    assert alert.expires == alert.ends
    for nothing in (None, 0, "0", "soon"):
        with pytest.raises(SourceChanged):
            parse({"features": [hazard(ends=nothing, expiration=nothing)]}, None)


@pytest.mark.parametrize(("code", "error"), [(400, SourceChanged), (500, SourceDown), (None, SourceChanged)])
def test_an_error_inside_200_is_an_error(code, error):
    with pytest.raises(error):
        parse({"error": {"code": code, "message": "Unable to complete operation."}}, None)


def test_an_empty_map_is_no_answer():
    with pytest.raises(SourceEmpty):
        parse({"features": []}, None)


@pytest.mark.parametrize("body", [None, [], {}, {"features": [{}]}, {"features": [{"attributes": {}}]}])
def test_anything_else_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError)):
        parse(body, None)


@given(st.lists(st.uuids(), min_size=1, max_size=8, unique=True))
def test_parse_never_invents_or_drops_a_hazard(identities):
    body = {"features": [hazard(cap_id=str(identity)) for identity in identities]}
    assert [a.id for a in parse(body, None).alerts] == [str(identity) for identity in identities]


def test_the_twin_draws_what_is_in_force_and_has_a_code():
    mapped = ask(WATCH_WARNING_MAP, world=World(1, NOW + 40))
    facts = [a for a in in_force(World(1, NOW)) if a.hazard.phenomenon]
    assert [a.id for a in mapped.alerts] == [f.id for f in facts]
    assert [a.expires.timestamp() for a in mapped.alerts] == [f.expires for f in facts]
    assert not mapped.truncated


def test_the_twins_milliseconds_say_the_same():
    assert ask(WATCH_WARNING_MAP, form="drift") == ask(WATCH_WARNING_MAP)


def test_the_twin_cuts_at_the_count_asked_for():
    sent = WATCH_WARNING_MAP.request
    reply = fetch(World(1, NOW), Get(sent.url, {**sent.params, "resultRecordCount": "10"}))
    assert b'"exceededTransferLimit":true' in reply.body


def test_the_twins_error_is_an_error():
    with pytest.raises(SourceChanged):
        ask(WATCH_WARNING_MAP, form="error200")
