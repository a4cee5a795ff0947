"""CISA's catalogue of exploited vulnerabilities."""

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.cisa  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.simulated.cisa import catalogue
from tools.sources.cisa import KNOWN_EXPLOITED, KNOWN_EXPLOITED_COPY, dated, newest, parse
from toolserver.upstream.decode import parse_body
from toolserver.upstream.freshness import judge_times
from toolserver.upstream.source import SourceDown, SourceEmpty, SourceError, SourceFrozen
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
    catalogue = parse(raw, None)
    found = catalogue.entries
    assert sorted(v.cve for v in found) == sorted(v["cveID"] for v in raw["vulnerabilities"])
    first = found[0]
    assert (first.cve, first.name) == ("CVE-2025-48384", "Git Link Following Vulnerability")
    assert (first.added, first.due, first.ransomware) == (date(2025, 8, 25), date(2025, 9, 15), False)
    assert newest(catalogue) == datetime(2025, 8, 25, tzinfo=UTC)


def test_a_recorded_catalogue_in_the_other_order_is_sorted_and_says_nothing_of_ransomware(sample):
    found = parse(json.loads(sample("cisa-kev/kev-2023-04-trimmed.json")), None).entries
    assert [v.added for v in found] == sorted((v.added for v in found), reverse=True)
    assert {v.ransomware for v in found} == {None}


@given(st.lists(st.dates(date(2000, 1, 1), date(2099, 1, 1))))
def test_no_vulnerability_is_invented_or_dropped_whatever_the_order(days):
    body = {"vulnerabilities": [ENTRY | {"dateAdded": day.isoformat()} for day in days]}
    assert [v.added for v in parse(body, None).entries] == sorted(days, reverse=True)


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
    assert parse({"vulnerabilities": [ENTRY | {"dueDate": "soon"}]}, None).entries[0].due is None


@pytest.mark.parametrize("form", [None, "drift"])
def test_the_twin_lists_the_catalogue_of_the_world_in_both_orders(form):
    found = ask(KNOWN_EXPLOITED, form=form).entries
    expected = catalogue(World(1, NOW))
    assert {v.cve for v in found} == {v["cveID"] for v in expected}
    assert found[0].added.isoformat() == expected[0]["dateAdded"]


def test_the_copy_is_a_source_of_its_own_and_holds_the_same():
    assert KNOWN_EXPLOITED.request.url.startswith("https://www.cisa.gov/")
    assert KNOWN_EXPLOITED_COPY.request.url.startswith("https://raw.githubusercontent.com/cisagov/")
    assert KNOWN_EXPLOITED_COPY.name == "CISA.known_exploited_copy"
    assert ask(KNOWN_EXPLOITED_COPY) == ask(KNOWN_EXPLOITED)


def test_a_catalogue_that_is_all_but_empty_is_no_success():
    own = KNOWN_EXPLOITED.request
    with pytest.raises(SourceEmpty):
        parse_body(KNOWN_EXPLOITED, own, None, fetch(World(1, NOW), own, form="empty").body)


@pytest.mark.parametrize(
    ("added", "released", "is_frozen"),
    [
        ("2026-01-02", "2026-01-03T15:00:11.9796Z", False),
        ("2025-11-01", "2026-01-03T15:00:11.9796Z", True),
        ("2026-01-02", "2025-11-01T15:00:11.9796Z", True),
        ("2026-01-02", None, False),
        ("2026-01-02", "soon", False),
        ("2025-11-01", None, True),
    ],
)
def test_a_copy_is_as_old_as_its_newest_entry_or_its_release_and_at_most_sixty_days(added, released, is_frozen):
    body = {"vulnerabilities": [ENTRY | {"dateAdded": added}], "dateReleased": released}
    at = dated(parse(body, None))
    assert KNOWN_EXPLOITED_COPY.newest_max_s == 60 * 86400
    if is_frozen:
        with pytest.raises(SourceFrozen):
            judge_times(KNOWN_EXPLOITED_COPY, at, datetime(2026, 1, 5, tzinfo=UTC))
    else:
        judge_times(KNOWN_EXPLOITED_COPY, at, datetime(2026, 1, 5, tzinfo=UTC))


def test_a_blocked_address_is_no_answer():
    with pytest.raises(SourceDown):
        ask(KNOWN_EXPLOITED, form="geo")
