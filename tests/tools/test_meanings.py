"""Who defines what an answer's words say: every classified row, on each side of every boundary."""

from datetime import date

from tests.served import all_tools
from toolserver.registry.meaning import find_meanings

MEANINGS = find_meanings(["tools"])


def test_every_row_is_classified_as_written():
    rows = [(m.field, given, m.decide(given), right) for m in MEANINGS if m.decide for given, right in m.rows]
    assert len(rows) > 50
    assert [row for row in rows if row[2] != row[3] or type(row[2]) is not type(row[3])] == []


def test_a_rule_of_a_publisher_names_it_with_a_link_its_words_and_the_day_they_were_read():
    for meaning in MEANINGS:
        if meaning.publisher is None:
            assert (meaning.link, meaning.words, meaning.read_on) == ("", "", None), meaning.field
        else:
            assert meaning.link.startswith("https://"), meaning.field
            assert meaning.words, meaning.field
            assert isinstance(meaning.read_on, date), meaning.field
    assert all(bool(m.decide) == bool(m.rows) for m in MEANINGS)


def test_every_field_is_one_of_an_answer():
    endpoints = {tool.path.removeprefix("/api/") for tool in all_tools()}
    assert {m.field.rpartition(".")[0] for m in MEANINGS} <= endpoints
