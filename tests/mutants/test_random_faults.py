"""Faults by chance are Python, and the same for the same text."""

from tests.mutants import random_faults

NEGATED = "(not (value > LIMIT and value != 7))"
TEXT = '''
LIMIT = 3

def cut(value: int) -> int:
    """Cut it."""
    if value > LIMIT and value != 7:
        note("zu groß", value + LIMIT)
        return True
    return value
'''


def test_each_kind_of_fault_is_made_where_it_stands():
    whole = TEXT.encode()
    faults = {whole[place.start : place.end].decode(): place.becomes for place in random_faults.places_in(TEXT)}

    assert faults["value > LIMIT"] == "value >= LIMIT"
    assert faults["value != 7"] == "value == 7"
    assert faults["7"] == "8"
    assert faults["True"] == "False"
    assert faults['note("zu groß", value + LIMIT)'] == "pass"
    assert faults["value + LIMIT"] == "(value - LIMIT)"
    assert "3" not in faults
    assert faults["value > LIMIT and value != 7"] in ("((value > LIMIT) or (value != 7))", NEGATED)


def test_a_room_has_the_same_faults_whenever_they_are_listed():
    faults = random_faults.mutants_of("toolserver/context", "tests/context")

    assert faults == random_faults.mutants_of("toolserver/context", "tests/context")
    assert len(faults) > 100


def test_a_file_of_a_room_may_be_tried_alone():
    faults = random_faults.mutants_of("toolserver/context/fallback.py", "tests/context")

    assert faults
    assert {fault.file for fault in faults} == {"toolserver/context/fallback.py"}
