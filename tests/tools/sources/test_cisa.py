"""CISA's catalogue of exploited vulnerabilities."""

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.cisa  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, decoded, fetch
from tools.simulated.cisa import catalogue
from tools.sources.cisa import KNOWN_EXPLOITED, newest, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source_errors import SourceDown, SourceEmpty, SourceError
from toolserver.world.model import World

ENTRY = {
    "cveID": "CVE-2099-1",
    "vulnerabilityName": "n",
    "vendorProject": "v",
    "product": "p",
    "dateAdded": "2026-01-02",
}


def test_a_recorded_catalogue_parses_to_its_values(sample):
    raw = json.loads(sample("cisa-kev/kev-2025-08-trimmed.json"))
    found = parse(raw, None)
    assert sorted(v.cve for v in found) == sorted(v["cveID"] for v in raw["vulnerabilities"])
    first = found[0]
    assert (first.cve, first.name) == ("CVE-2025-48384", "Git Link Following Vulnerability")
    assert (first.added, first.due, first.ransomware) == (date(2025, 8, 25), date(2025, 9, 15), False)
    assert newest(found) == datetime(2025, 8, 25, tzinfo=UTC)


def test_a_recorded_catalogue_in_the_other_order_is_sorted_and_says_nothing_of_ransomware(sample):
    found = parse(json.loads(sample("cisa-kev/kev-2023-04-trimmed.json")), None)
    assert [v.added for v in found] == sorted((v.added for v in found), reverse=True)
    assert {v.ransomware for v in found} == {None}


@given(st.lists(st.dates(date(2000, 1, 1), date(2099, 1, 1))))
def test_no_vulnerability_is_invented_or_dropped_whatever_the_order(days):
    body = {"vulnerabilities": [ENTRY | {"dateAdded": day.isoformat()} for day in days]}
    assert [v.added for v in parse(body, None)] == sorted(days, reverse=True)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"vulnerabilities": None},
        {"vulnerabilities": [{}]},
        {"vulnerabilities": [ENTRY | {"cveID": "x"}]},
        {"vulnerabilities": [ENTRY | {"dateAdded": "soon"}]},
    ],
)
def test_a_body_of_another_shape_is_refused(body):
    with pytest.raises((SourceError, LookupError, TypeError, ValueError)):
        parse(body, None)


def test_a_due_date_that_cannot_be_read_is_unknown():
    assert parse({"vulnerabilities": [ENTRY | {"dueDate": "soon"}]}, None)[0].due is None


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_lists_the_catalogue_of_the_world_in_both_orders(form):
    found = ask(KNOWN_EXPLOITED, form=form)
    expected = catalogue(World(1, NOW))
    assert {v.cve for v in found} == {v["cveID"] for v in expected}
    assert found[0].added.isoformat() == expected[0]["dateAdded"]


def test_the_copy_holds_the_same_and_is_asked_second():
    world = World(1, NOW)
    own, copy = KNOWN_EXPLOITED.request
    assert own.url.startswith("https://www.cisa.gov/")
    assert parse(decoded(fetch(world, copy), copy), None) == parse(decoded(fetch(world, own), own), None)


def test_a_catalogue_that_is_all_but_empty_is_no_success():
    own, _ = KNOWN_EXPLOITED.request
    with pytest.raises(SourceEmpty):
        parse_body(KNOWN_EXPLOITED, own, None, fetch(World(1, NOW), own, form="empty").body)


def test_a_blocked_address_is_no_answer():
    with pytest.raises(SourceDown):
        ask(KNOWN_EXPLOITED, form="geo")
