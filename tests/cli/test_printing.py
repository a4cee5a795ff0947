"""How commands print objects and lists: as lines of text, or as one JSON document."""

import json

from toolserver.cli.printing import print_facts, print_rows


def test_facts_are_lines_or_one_object(capsys):
    print_facts({"state": "asked", "tx": None}, False)
    print_facts({"state": "asked", "tx": None}, True)
    text, _ = capsys.readouterr()
    assert text.startswith("state        asked\n{")
    assert json.loads(text[text.index("{") :]) == {"state": "asked", "tx": None}


def test_a_list_is_lines_or_says_that_it_is_empty(capsys):
    print_rows([{"a": 1, "b": None, "c": 2}], False, "nothing")
    print_rows([], False, "nothing")
    print_rows([], True, "nothing")
    assert capsys.readouterr().out == "1  2\nnothing\n[]\n"


def test_members_that_are_not_set_may_be_shown_as_well(capsys):
    print_facts({"state": "asked", "tx": None, "ok": True, "tables": ["token"]}, False, with_unset=True)
    assert capsys.readouterr().out.splitlines() == [
        "state        asked",
        "tx           null",
        "ok           true",
        'tables       ["token"]',
    ]
