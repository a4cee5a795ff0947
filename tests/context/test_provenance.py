"""`_meta` and `warning[]` of an answer."""

from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from typing import get_args

import pytest

from tests.context.sources import NOW, A, B, C
from tests.requirements import proves
from toolserver.context.provenance import Caveat, Code, Coverage, Provenance, SourceNote
from toolserver.upstream.source import Licence


def note(source=A, status="live", *, section="data", age_s=0, **more):
    return SourceNote(source, section, status, NOW - timedelta(seconds=age_s), **more)


def failure(source=B, reason="http_503", section="data"):
    return SourceNote(source, section, "error", reason=reason)


def kept(*notes):
    provenance = Provenance()
    provenance.add(notes)
    return provenance


def meta(*notes):
    return kept(*notes).meta(stale=False)


def test_an_entry_has_what_the_contract_names_and_reasons_only_where_there_are_any():
    entry = note().as_json()
    assert entry == {
        "name": "Test.A",
        "section": "data",
        "status": "live",
        "fetched_at": "2027-01-15T08:00:00Z",
    }
    more = note(status="fallback", reason="http_503: Test.B", replaces="Test.B").as_json()
    assert (more["reason"], more["replaces"]) == ("http_503: Test.B", "Test.B")


def test_a_source_that_failed_is_listed_after_those_that_are_used_and_counts_for_nothing_else():
    made = meta(failure(A), note(C), note(B, section="a"))
    assert [(entry["section"], entry["name"], entry["status"]) for entry in made["sources"]] == [
        ("a", "Test.B", "live"),
        ("data", "Test.C", "live"),
        ("data", "Test.A", "error"),
    ]
    failed_only = meta(failure())
    assert [entry["reason"] for entry in failed_only["sources"]] == ["http_503"]
    assert failed_only["attribution"] == []


def test_the_summary_is_that_of_the_sources_that_are_used():
    other = replace(C, licence=Licence("attribution", "Another"), untrusted=True)
    made = meta(note(age_s=60), note(other, age_s=10))
    assert (made["attribution"], made["untrusted_text"]) == (["Another", "Test"], True)
    assert made["stale"] is False
    assert kept(note(age_s=60), note(other, age_s=10)).oldest_fetched_at == NOW - timedelta(seconds=60)
    assert meta(note(), replace(failure(other)))["untrusted_text"] is False


def test_two_reads_of_one_source_for_one_section_are_one_entry_of_the_heavier_status_and_the_older_age():
    one = note(status="stale", age_s=600, reason="http_500")
    other = note(status="live", age_s=5)
    for order in ((one, other), (other, one)):
        (merged,) = kept(*order).sources
        assert (merged.status, merged.reason, merged.fetched_at) == ("stale", "http_500", one.fetched_at)


def test_a_source_of_which_one_read_failed_is_used_and_keeps_the_reason():
    for order in ((note(), failure(A)), (failure(A), note())):
        (merged,) = kept(*order).sources
        assert (merged.status, merged.reason, merged.used) == ("live", "http_503", True)


def test_one_source_in_two_sections_has_two_entries():
    assert len(kept(note(), note(section="other")).sources) == 2


@pytest.mark.parametrize(
    ("stale", "fresh", "share", "is_stale"),
    [(0, 0, 0.0, False), (0, 2, 0.0, False), (1, 9, 0.0, True), (1, 1, 0.5, False), (2, 1, 0.5, True)],
)
def test_an_answer_is_stale_when_more_than_the_share_of_its_sources_is(stale, fresh, share, is_stale):
    notes = [note(section=f"s{n}", status="stale") for n in range(stale)]
    notes += [note(section=f"f{n}") for n in range(fresh)]
    assert kept(*notes, failure()).stale(share) is is_stale


def test_what_a_tool_says_about_the_whole_answer_decides():
    provenance = kept(note(status="stale"))
    assert provenance.stale()
    provenance.stale_as_a_whole = False
    assert not provenance.stale()
    fresh = kept(note())
    fresh.stale_as_a_whole = True
    assert fresh.stale()


def test_a_warning_is_given_once_and_warnings_have_one_order():
    provenance = Provenance()
    provenance.warn("b", "partial", "x")
    provenance.warn("a", "stale_data", "y", "Test.B")
    provenance.warn("a", "stale_data", "y", "Test.A")
    provenance.warn("b", "partial", "x")
    assert [(each.section, each.source) for each in provenance.caveats()] == [
        ("a", "Test.A"),
        ("a", "Test.B"),
        ("b", None),
    ]


@pytest.mark.parametrize(
    ("code", "degraded"),
    [
        ("section_unavailable", True),
        ("unproved_empty", True),
        ("stale_data", True),
        ("partial", True),
        ("truncated", False),
        ("default_location", False),
    ],
)
def test_what_an_upstream_may_give_again_at_any_moment_is_degraded(code, degraded):
    notes = Provenance()
    notes.warn("data", code, "Something is so.")
    assert notes.degraded is degraded


def test_a_warning_in_json_names_its_source_if_there_is_one_and_is_not_endless():
    assert Caveat("a", "partial", "m" * 300).as_json() == {"section": "a", "code": "partial", "message": "m" * 200}
    assert Caveat("a", "partial", "m", "Test.A").as_json()["source"] == "Test.A"


def test_a_source_that_the_licence_policy_bars_has_no_part_in_the_answer_and_is_not_counted():
    notes = kept(failure(A, "licence: no"), failure(B, "timeout: 8 s"), note(C))
    assert [entry["name"] for entry in notes.meta(stale=False)["sources"]] == [C.name, B.name]
    assert notes.count_sources() == (1, 1)


def test_the_time_of_the_oldest_is_the_answers_own_and_not_repeated():
    made = meta(note(age_s=60), note(C, age_s=60), note(B, age_s=10), failure(A, section="news"))
    times = {(entry["name"], entry["section"]): entry.get("fetched_at", "absent") for entry in made["sources"]}
    assert times == {
        (A.name, "data"): "absent",
        (C.name, "data"): "absent",
        (B.name, "data"): "2027-01-15T07:59:50Z",
        (A.name, "news"): None,
    }


@proves("answers.member-missing")
def test_what_a_source_no_longer_gives_is_told_once_and_changes_nothing_else():
    lacking = Coverage(missing=("change", "price"))
    found = kept(note(coverage=lacking), note(coverage=lacking), note(B, coverage=lacking, section="news"))
    assert [caveat.as_json() for caveat in found.caveats()] == [
        {
            "section": section,
            "source": source,
            "code": "field_missing",
            "message": f"{source} no longer gives change, price, which it gave before.",
        }
        for section, source in (("data", "Test.A"), ("news", "Test.B"))
    ]
    assert (found.degraded, found.stale()) == (False, False)
    assert kept(replace(failure(), coverage=lacking)).caveats() == []


def test_a_warning_names_five_missing_members_and_counts_the_others():
    names = tuple("abcdefg")
    assert "gives a, b, c, d, e and 2 more, which" in kept(note(coverage=Coverage(missing=names))).warnings[0].message
    both = kept(note(coverage=Coverage(missing=("b",))), note(coverage=Coverage(missing=("a",))))
    assert both.sources[0].coverage.missing == ("a", "b")


@proves("answers.rows-dropped")
def test_rows_that_were_left_out_are_told_once_with_their_count_and_their_source():
    found = kept(
        note(coverage=Coverage(dropped=3)),
        note(coverage=Coverage(dropped=3)),
        note(B, coverage=Coverage(dropped=1), section="news"),
        note(C),
    )
    assert [caveat.as_json() for caveat in found.caveats()] == [
        {
            "section": "data",
            "source": "Test.A",
            "code": "rows_dropped",
            "message": "3 rows of Test.A could not be read and are left out.",
            "count": 3,
        },
        {
            "section": "news",
            "source": "Test.B",
            "code": "rows_dropped",
            "message": "1 row of Test.B could not be read and is left out.",
            "count": 1,
        },
    ]
    assert not found.degraded


def test_what_was_read_of_a_longer_list_is_told_where_it_is_used():
    found = kept(
        note(coverage=Coverage("the first page")),
        note(coverage=Coverage("the first page")),
        replace(failure(), coverage=Coverage("a page")),
    )
    assert [caveat.as_json() for caveat in found.caveats()] == [
        {"section": "data", "source": "Test.A", "code": "insufficient_sample", "message": "Read was the first page."}
    ]
    assert not found.degraded


def test_rows_of_a_source_whose_answer_is_not_used_are_not_told():
    assert kept(replace(failure(), coverage=Coverage(dropped=2))).caveats() == []


@pytest.mark.parametrize(
    ("given", "is_withheld"),
    [
        (failure(reason="budget: its turn is some seconds away"), True),
        (note(status="fallback", reason="budget: Test.b"), True),
        (failure(reason="timeout"), False),
        (note(), False),
    ],
)
def test_what_our_own_pacing_kept_from_being_asked_is_known(given, is_withheld):
    assert kept(given).withheld is is_withheld


def test_of_two_reads_the_entry_has_the_heavier_status_whichever_came_first():
    rising = ("live", "cached", "fallback", "stale")
    for lighter, heavier in combinations(rising, 2):
        for order in ((lighter, heavier), (heavier, lighter)):
            (merged,) = kept(*(note(status=status) for status in order)).sources
            assert merged.status == heavier


def test_of_two_reads_that_are_equally_heavy_the_first_gives_its_reason():
    reasons = [kept(note(status="stale", reason="a"), note(status="stale", reason="b")).sources[0].reason]
    reasons += [kept(failure(A, "a"), failure(A, "b")).sources[0].reason]
    reasons += [kept(note(status="stale"), note(reason="b")).sources[0].reason]
    assert reasons == ["a", "a", "b"]


def test_of_two_reads_the_larger_number_of_rows_left_out_is_noted():
    for order in ((1, 3), (3, 1)):
        assert kept(*(note(coverage=Coverage(dropped=number)) for number in order)).sources[0].coverage.dropped == 3


def test_a_read_without_a_time_makes_nothing_older():
    timeless = SourceNote(A, "data", "live")
    assert kept(timeless, note(age_s=60)).sources[0].fetched_at == NOW - timedelta(seconds=60)
    assert kept(timeless, timeless).sources[0].fetched_at is None
    assert kept(timeless, note(C, age_s=60)).oldest_fetched_at == NOW - timedelta(seconds=60)
    assert kept(timeless).oldest_fetched_at is None
    assert kept(timeless).meta(stale=True) == {
        "sources": [{"name": "Test.A", "section": "data", "status": "live", "fetched_at": None}],
        "attribution": ["Test"],
        "untrusted_text": False,
        "stale": True,
    }


def test_a_list_that_was_cut_says_how_many_of_how_many_it_shows():
    notes = Provenance()
    notes.warn_truncated("data.rows", 1000, 12345)
    assert [caveat.as_json() for caveat in notes.caveats()] == [
        {"section": "data.rows", "code": "truncated", "message": "1,000 of 12,345 are listed.", "total": 12345}
    ]


def test_a_number_in_a_warning_is_told_even_if_it_is_none_at_all():
    told = Caveat("a", "partial", "m", total=0, count=0).as_json()
    assert (told["total"], told["count"]) == (0, 0)


def test_sources_are_counted_once_by_name_and_one_that_answered_anywhere_is_a_good_one():
    notes = kept(note(A, section="a.x"), failure(A, section="b"), failure(B, section="a"), failure(C, section="b"))
    assert notes.count_sources() == (1, 2)
    assert notes.count_sources("a") == (1, 1)
    assert notes.count_sources("b") == (0, 2)


def test_only_warnings_that_end_with_an_upstreams_return_make_an_answer_degraded():
    passing = set()
    for code in get_args(Code):
        notes = Provenance()
        notes.warn("data", code, "Something is so.")
        passing |= {code} if notes.degraded else set()
    assert passing == {
        *(
            "section_unavailable",
            "unproved_empty",
            "stale_data",
            "partial",
            "implausible_jump",
            "missing_symbols",
            "no_network",
        )
    }


def test_thousands_of_rows_left_out_are_told_with_a_comma():
    warning = kept(note(coverage=Coverage(dropped=1200))).warnings[0]
    assert warning.message == "1,200 rows of Test.A could not be read and are left out."


def test_the_old_names_of_what_a_read_covers_can_still_be_read():
    read = note(coverage=Coverage("the first page", 2))

    assert (read.part, read.dropped) == ("the first page", 2)
