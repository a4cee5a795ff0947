"""/sources: every source with licence, terms, users and its day."""

from dataclasses import replace

from rest_bridge.pages.sources import KnownLine, describe_known, find_users, group_sources, sources_page
from tests.catalog.tiny import FACTS, PLACE, TINY
from tests.rest_bridge.made import PROJECT
from tests.rest_bridge.markup import Page
from tests.rest_bridge.statuses import DAY, NOTHING_KNOWN, status_of, summed
from toolserver.registry.registry import Registry
from toolserver.registry.source_list import list_sources


def test_every_source_has_a_row_with_licence_terms_and_the_tools_that_read_it():
    page = Page(sources_page(PROJECT, FACTS, status_of(PROJECT)).body)
    listed = list_sources(PROJECT)
    assert page.faults == []
    assert set(page.ids) >= {source["name"] for source in listed}
    assert set(page.links) >= {source["licence"]["terms_url"] for source in listed if "terms_url" in source["licence"]}
    users = find_users(PROJECT)
    assert {operation.name for each in users.values() for operation in each} == {
        operation.name for operation in PROJECT if operation.sources or operation.shipped
    }
    assert all(users[source["name"]] for source in listed)


def test_the_past_day_is_shown_as_shares_of_what_was_asked_and_as_unknown_where_nothing_was():
    page = Page(sources_page(TINY, FACTS, status_of(TINY)).body)
    assert "–" in page.text
    day = {"state": "up", "day": DAY, "past_day": summed(8, 2, 1)}
    words = Page(sources_page(TINY, FACTS, status_of(TINY, states={"Sample.place": day})).body).text
    assert "75.0%" in words
    assert "62.5%" in words
    assert "Sample & Sons <office>" in words


def test_below_a_name_stands_when_it_was_alive_when_it_ends_and_what_it_no_longer_gives():
    known = {
        "seen_on": "2026-07-11",
        "seen_by": "recorded body",
        "announced": [
            {"kind": "sunset", "text": "x", "on": "2026-07-01", "ends_on": "2026-05-01"},
            {"kind": "warning", "text": '299 - "use <b>"', "on": "2026-07-01", "ends_on": None},
        ],
        "gone": [{"member": "price", "given_on": "2026-04-09"}],
        "alone": "Nobody else has it",
        "note": "A copy",
    }
    assert describe_known(known) == [
        KnownLine("last seen alive 2026-07-11 (recorded body)"),
        KnownLine("its end is announced for 2026-05-01 (last said on 2026-07-01)", is_urgent=True),
        KnownLine('announces warning: 299 - "use <b>" (last said on 2026-07-01)', is_urgent=True),
        KnownLine("no longer gives price", is_urgent=True),
        KnownLine("no other source stands in: Nobody else has it"),
        KnownLine("A copy"),
    ]
    page = Page(sources_page(TINY, FACTS, status_of(TINY, states={"Sample.place": {"known": known}})).body)
    assert page.faults == []
    assert all(line.text in page.text for line in describe_known(known))
    assert describe_known(NOTHING_KNOWN) == [KnownLine("not yet seen alive")]
    assert "not yet seen alive" in Page(sources_page(TINY, FACTS, status_of(TINY)).body).text


def test_sources_stand_by_letter_whatever_their_case_and_the_summary_names_their_providers():
    names = ["arxiv.a", "AWS.b", "USGS.two", "Aider.c", "USGS.one"]
    groups = group_sources({"name": name} for name in names)
    assert [(group.letter, group.providers) for group in groups] == [("A", ["Aider", "arxiv", "AWS"]), ("U", ["USGS"])]
    assert [source["name"] for source in groups[1].sources] == ["USGS.one", "USGS.two"]


def test_every_group_can_be_opened_without_a_script():
    page = Page(sources_page(PROJECT, FACTS, status_of(PROJECT)).body)
    assert page.names.count("details") == page.names.count("summary") == page.names.count("table") > 5


def test_a_tool_is_named_once_for_a_source_that_it_reads_in_two_ways_and_for_one_that_comes_with_the_service():
    other = replace(PLACE, name="Sample.shipped")
    sights = replace(TINY["sights"], sources=(PLACE, replace(PLACE, fresh_s=5)), shipped=(other,))
    users = find_users(Registry([sights, TINY["digest"]]))
    assert {name: [operation.name for operation in readers] for name, readers in users.items()} == {
        "Sample.place": ["sights", "digest"],
        "Sample.shipped": ["sights"],
    }


def test_sources_are_counted_by_licence():
    page = Page(sources_page(TINY, FACTS, status_of(TINY)).body)
    assert "free to use with attribution" in page.text
    assert 'content="All 1 sources with licence' in sources_page(TINY, FACTS, status_of(TINY)).body.decode()
