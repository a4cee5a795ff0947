"""Which errors end a command with their own sentence, and which are faults of the program."""

import sqlite3

import click
import pytest

from toolserver.cli.error_lines import explain_errors
from toolserver.errors import ToolserverError


@pytest.mark.parametrize("error", [ToolserverError("why"), ValueError("why"), FileNotFoundError("why")])
def test_an_expected_error_becomes_its_own_sentence(error):
    with pytest.raises(click.ClickException) as refused, explain_errors():
        raise error
    assert refused.value.message == "why"


@pytest.mark.parametrize("error", [KeyError("a fault"), sqlite3.OperationalError("a fault")])
def test_a_fault_of_ours_is_not_hidden(error):
    with pytest.raises(type(error)), explain_errors():
        raise error
