"""ThreatFox: the export without a key, the API with one."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.threatfox  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.threatfox import indicators
from tools.sources.threatfox import API, EXPORT, INDICATORS, newest, parse, request
from toolserver.upstream.source import Post, SourceChanged, SourceDown, SourceEmpty, SourceError, SourceRefused
from toolserver.world.model import World

KEY = {"ABUSE_CH_AUTH_KEY": "sim-1"}


def entry(**changes):
    base = {"ioc_value": "a.example", "ioc_type": "domain", "threat_type": "botnet_cc", "malware_printable": "Vidar"}
    return base | {"first_seen_utc": "2026-07-24 13:50:06", "confidence_level": 100, "tags": "a,b"} | changes


def test_without_a_key_the_export_is_asked_and_with_one_the_api():
    assert request(None, {}).url == EXPORT
    keyed = request(None, KEY)
    assert isinstance(keyed, Post)
    assert (keyed.url, keyed.headers, keyed.json) == (API, {"Auth-Key": "sim-1"}, {"query": "get_iocs", "days": 1})


def test_a_recorded_export_parses_to_its_values(sample):
    raw = json.loads(sample("threatfox/export-recent-2026-07-trimmed.json"))
    found = parse(raw, None)
    assert [i.id for i in found] == [int(key) for key in raw]
    assert [i.value for i in found] == [listed[0]["ioc_value"] for listed in raw.values()]
    first = found[0]
    assert (first.kind, first.malware, first.threat) == ("url", "Vidar", "botnet_cc")
    assert first.first_seen_at == datetime(2026, 7, 24, 13, 50, 6, tzinfo=UTC)
    assert (first.confidence_percent, first.tags) == (100, ("vidar",))


def test_a_recorded_answer_of_the_api_parses_to_its_values(sample):
    first, second = parse(json.loads(sample("threatfox/api-get_iocs-2022-08.json")), None)
    assert (first.id, first.value, first.kind, first.malware) == (841537, "wizzy.hopto.org", "domain", "AsyncRAT")
    assert first.first_seen_at == datetime(2022, 8, 5, 19, 43, 8, tzinfo=UTC)
    assert (second.kind, second.tags) == ("sha1_hash", ("Vidar",))


@given(st.dictionaries(st.integers(1, 10**7).map(str), st.lists(st.just(entry()), max_size=3)))
def test_no_indicator_is_invented_or_dropped(body):
    assert [i.id for i in parse(body, None)] == [int(key) for key, listed in body.items() for _ in listed]


@pytest.mark.parametrize("tags", ["a,b", ["a", "b"], "a,,b", ["a", None, "b"]])
def test_tags_come_as_text_or_as_a_list(tags):
    assert parse({"1": [entry(tags=tags)]}, None)[0].tags == ("a", "b")


@pytest.mark.parametrize("change", [{"tags": None}, {"confidence_level": "high"}, {"malware_printable": None}])
def test_an_optional_member_that_cannot_be_read_does_not_lose_the_indicator(change):
    assert parse({"1": [entry(**change)]}, None)[0].value == "a.example"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"query_status": "no_result", "data": "Your search did not yield any results"}, SourceEmpty),
        ({"query_status": "illegal_days", "data": "The value must be between 1 and 7"}, SourceChanged),
        ({"query_status": "ok", "data": "nothing"}, SourceChanged),
        ({"query_status": "unknown_auth_key", "data": []}, SourceRefused),
        ({"error": "Unauthorized"}, SourceRefused),
    ],
)
def test_a_sentence_where_data_was_asked_for_is_an_error(body, error):
    with pytest.raises(error):
        parse(body, None)


@pytest.mark.parametrize(
    "body", [None, [], "x", {"1": [{}]}, {"x": [entry()]}, {"1": entry()}, {"1": [entry(first_seen_utc="now")]}]
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError, AttributeError)):
        parse(body, None)


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_export_of_the_twin_holds_what_the_world_holds(form):
    found = ask(INDICATORS, form=form)
    expected = indicators(World(1, NOW), NOW - 2 * 86400)
    assert [(i.id, i.value, i.kind) for i in found] == [(i.id, i.value, i.kind) for i in expected]
    assert newest(found).timestamp() == int(expected[0].at)
    assert NOW - expected[0].at < 3600


def test_the_api_of_the_twin_says_the_same_as_its_export():
    by_key = ask(INDICATORS, keys=KEY)
    assert by_key == ask(INDICATORS)[: len(by_key)]
    assert len(by_key) > 100


def test_the_twin_refuses_other_keys_and_can_answer_with_a_sentence():
    with pytest.raises(SourceDown):
        ask(INDICATORS, keys={"ABUSE_CH_AUTH_KEY": "wrong"})
    with pytest.raises(SourceChanged):
        ask(INDICATORS, keys=KEY, form="error200")
