"""The list of mutants fits the code as it is: each fault can still be made, and has tests in its room."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import ORACLE, Verdict, describe, report
from tests.mutants.boundaries import BOUNDARIES
from tests.mutants.faults import MUTANTS, Mutant, room_of_tests
from tests.mutants.rooms import list_room_faults
from tests.mutants.sql import SQL
from tests.mutants.truth import ENGINE, LIES, TOOLS
from tests.truth.matrix import named_cases

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "toolserver/upstream",
    "toolserver/context",
    "toolserver/calls",
    "toolserver/money/ledger",
    "toolserver/money/receipts",
)
FACES = ("toolserver/mcp", "rest_bridge")


@pytest.mark.parametrize(
    "mutant", [*MUTANTS, *SQL, *LIES, *BOUNDARIES, *list_room_faults()], ids=lambda mutant: mutant.name
)
def test_a_fault_can_be_made_and_is_python(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")

    assert text.count(mutant.text) == 1, f"{mutant.file} has changed: write {mutant.name} for it as it is now"
    ast.parse(mutant.apply(text))
    assert mutant.test.startswith(ORACLE) or (ROOT / mutant.test).exists()


def test_there_are_thirty_lies_and_the_oracle_knows_the_tools_that_tell_them():
    assert len({mutant.name for mutant in LIES}) == len(LIES) >= 30
    assert {mutant.test.removeprefix(ORACLE) for mutant in TOOLS} <= {case.tool for case in named_cases()}


@pytest.mark.parametrize("mutant", [*MUTANTS, *SQL, *ENGINE, *list_room_faults()], ids=lambda mutant: mutant.name)
def test_a_fault_is_to_be_seen_by_the_tests_of_its_room(mutant):
    assert (ROOT / mutant.test).is_relative_to(ROOT / room_of_tests(mutant.file))


def test_there_are_ten_faults_of_what_instances_share():
    assert len({mutant.name for mutant in SQL}) == len(SQL) >= 10


def test_there_are_forty_and_each_room_has_some():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
    for room in (*ROOMS, *FACES):
        assert sum(mutant.file.startswith(room) for mutant in MUTANTS) >= 3, room


def test_a_survivor_is_named_with_its_test_file():
    mutant = Mutant("no limit", "a.py", "x", "y", "tests/test_a.py")

    assert list(report(2, [mutant], ["tests/test_b.py"])) == [
        "red without any fault: tests/test_b.py",
        "survived: no limit (a.py); tests/test_a.py stays green",
        "2 mutants, 1 killed by the tests of their own room",
    ]


@pytest.mark.parametrize(("is_right", "word"), [(True, "killed by"), (False, "SURVIVED")])
def test_each_mutant_is_printed_with_its_room_its_fault_and_what_judged_it(is_right, word):
    mutant = Mutant("no limit", "toolserver/calls/rate_limit.py", "x", "y", "tests/calls/test_rate_limit.py")

    assert describe(mutant, Verdict(is_right, 2.6)) == f"calls: no limit: {word} tests/calls/test_rate_limit.py in 3 s"
