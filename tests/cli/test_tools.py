"""`toolserver tools`: the tools of this installation and of a service elsewhere, as lines or as MCP lists them."""

import json

import click
import pytest
from click.testing import CliRunner

from toolserver.cli.main import main
from toolserver.cli.tools import fetch_rows


def run(*words):
    return CliRunner().invoke(main, ["tools", *words])


def test_on_a_terminal_a_line_for_each_tool_and_elsewhere_json():
    lines = run("--text", "--toolset", "core").stdout.splitlines()
    assert lines[0].split() == ["tool", "price", "path", "title"]
    names = {line.split()[0] for line in lines[1:]}
    listed = json.loads(run("--toolset", "core").stdout)
    assert names == {tool["name"] for tool in listed}
    assert "inputSchema" in listed[0]


async def test_an_address_that_cannot_be_asked_ends_in_one_sentence():
    with pytest.raises(click.ClickException, match=r"no answer from http://127\.0\.0\.1:9"):
        await fetch_rows("http://127.0.0.1:9", "core")
