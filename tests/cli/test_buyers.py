"""What verbs about buyers share: a ledger that is there, a name to sign for, and plain lines."""

import json

import click
import pytest

from toolserver.cli.buyers import Desk, at_desk, print_facts, print_list
from toolserver.money.ledger.sqlite import FILE, open_ledger


async def test_buyers_sign_for_the_name_of_the_service(tmp_path, monkeypatch):
    from toolserver.cli.load_settings import settings_from

    async with open_ledger(tmp_path / FILE) as ledger:
        with pytest.raises(ValueError, match="base_url"):
            _ = Desk(settings_from(data_dir=tmp_path), ledger.file).host
        monkeypatch.setenv("TOOLSERVER_BASE_URL", "https://data.example/path")
        assert Desk(settings_from(data_dir=tmp_path), ledger.file).host == "data.example"


def test_without_a_ledger_there_is_nothing_to_do(tmp_path):
    async def job(desk):
        raise NotImplementedError

    with pytest.raises(click.ClickException, match="there is no ledger"):
        at_desk(tmp_path, job)


def test_facts_are_lines_or_one_object(capsys):
    print_facts({"state": "asked", "tx": None}, False)
    print_facts({"state": "asked", "tx": None}, True)
    text, _ = capsys.readouterr()
    assert text.startswith("state        asked\n{")
    assert json.loads(text[text.index("{") :]) == {"state": "asked", "tx": None}


def test_a_list_is_lines_or_says_that_it_is_empty(capsys):
    print_list([{"a": 1, "b": None, "c": 2}], False, "nothing")
    print_list([], False, "nothing")
    print_list([], True, "nothing")
    assert capsys.readouterr().out == "1  2\nnothing\n[]\n"
