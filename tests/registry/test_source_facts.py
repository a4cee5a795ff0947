"""What is known of sources: two files about the same source become one record, and every source of ours has its row."""

from datetime import date

import msgspec
import pytest

from tests.served import all_tools
from toolserver.registry.source_facts import (
    Announced,
    GoneMember,
    Sighting,
    SourceFacts,
    merge_facts,
    read_day,
    read_facts,
    write_facts,
)
from toolserver.serving.packaged_texts import read_shipped_facts

EARLY, LATE = date(2026, 7, 1), date(2026, 11, 28)
RECORDED, CALLED = Sighting(EARLY, "recorded body"), Sighting(LATE, "live call")
SUNSET = Announced("sunset", "Fri, 01 May 2026 00:00:00 GMT", EARLY)
LATER_SUNSET = Announced("sunset", "Mon, 01 Mar 2027 00:00:00 GMT", LATE)


@pytest.mark.parametrize(("first", "second"), [(RECORDED, CALLED), (CALLED, RECORDED)])
def test_the_later_sighting_counts_whichever_file_has_it(first, second):
    assert SourceFacts(seen=first).merge(SourceFacts(seen=second)).seen == CALLED


def test_of_two_announcements_of_a_kind_the_later_one_counts_and_other_kinds_stay():
    warned = Announced("warning", "299", EARLY)
    both = SourceFacts(announced=(LATER_SUNSET,)).merge(SourceFacts(announced=(SUNSET, warned)))
    assert both.announced == (LATER_SUNSET, warned)


def test_nothing_that_one_file_knows_is_lost_by_the_other():
    known = SourceFacts(RECORDED, (SUNSET,), (GoneMember("price", EARLY),), "why", "note")
    merged = merge_facts({"A.one": known}, {"A.one": SourceFacts(), "B.two": SourceFacts(CALLED)})
    assert merged == {"A.one": known, "B.two": SourceFacts(CALLED)}
    assert read_facts(write_facts(merged)) == merged


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Fri, 01 May 2026 00:00:00 GMT", date(2026, 5, 1)),
        ("2026-05-01T00:00:00Z", date(2026, 5, 1)),
        ("soon", None),
        ("", None),
    ],
)
def test_a_sunset_names_a_day_or_none(text, day):
    assert read_day(text) == day
    assert Announced("sunset", text, EARLY).ends_on == day
    assert Announced("warning", text, EARLY).ends_on is None


@pytest.mark.parametrize("text", [b"", b"{}", b'{"format": 2, "sources": {}}', b'{"format": 1, "sources": [], "x": 1}'])
def test_another_file_is_not_read_as_facts(text):
    with pytest.raises(msgspec.DecodeError):
        read_facts(text)


def test_the_shipped_facts_are_about_sources_of_ours_and_say_something():
    facts = read_shipped_facts()
    names = {source.name for operation in all_tools() for source in (*operation.sources, *operation.shipped)}
    assert facts.keys() <= names
    assert [name for name, known in facts.items() if known == SourceFacts()] == []
    assert [name for name, known in facts.items() if known.alone and len(known.alone.split()) < 4] == []
    assert facts["Polymarket.markets_by_volume"].announced[1].ends_on == date(2026, 5, 1)
