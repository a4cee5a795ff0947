"""What is printed once a service is ready: a line for programs, or a greeting for a person."""

import json
import re

import pytest

from toolserver.cli.ready_notice import ReadyNotice
from toolserver.serving.listeners import Listeners
from toolserver.settings import MetricsSettings, Settings


@pytest.fixture
def listeners(tmp_path):
    opened = Listeners.open(Settings(data_dir=tmp_path, port=0, metrics=MetricsSettings(enabled=False)))
    yield opened
    opened.main.close()


def test_a_person_reads_every_address_that_there_is_and_what_to_try(listeners, capsys):
    ReadyNotice(False, {"credits": 500}, "try {}".format).publish(listeners)
    out = capsys.readouterr().out
    assert re.findall(r"^  (.*?)  +(\S+)$", out, re.MULTILINE) == [
        ("home page", listeners.base_url),
        ("MCP", f"{listeners.base_url}/api/mcp"),
        ("its credits", "500"),
    ]
    assert out.endswith(f"500\n\ntry {listeners.base_url}\n")


def test_a_program_reads_one_line_with_the_addresses_and_the_facts(listeners, capsys):
    ReadyNotice(True, {"credits": 500}).publish(listeners)
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line).items() >= {"ready": True, "base_url": listeners.base_url, "credits": 500}.items()
