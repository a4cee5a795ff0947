"""Completion in a shell: the scripts, and what they are told of commands, tools and arguments."""

import subprocess

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from toolserver.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_this_program(shell):
    done = CliRunner().invoke(main, ["completion", shell], prog_name="toolserver")
    assert done.exit_code == 0
    assert f"_TOOLSERVER_COMPLETE={shell}_complete" in done.stdout
    other = CliRunner().invoke(main, ["completion", shell], prog_name="agent-toolserver")
    assert "_AGENT_TOOLSERVER_COMPLETE" in other.stdout


def test_bash_takes_the_script():
    script = CliRunner().invoke(main, ["completion", "bash"], prog_name="toolserver").stdout
    done = subprocess.run(["bash", "-c", f"{script}\ncomplete -p toolserver"], capture_output=True, text=True)
    assert (done.returncode, "_toolserver_completion" in done.stdout) == (0, True)


def complete(*words, incomplete=""):
    found = ShellComplete(main, {}, "toolserver", "X").get_completions(list(words), incomplete)
    return [item.value for item in found]


def test_commands_tools_flags_and_values_are_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    assert complete(incomplete="comp") == ["completion"]
    assert complete("call", incomplete="weath") == ["weather"]
    assert complete("call", "weather", incomplete="--pl") == ["--place"]
    assert complete("call", "weather", "--place", "Paris", incomplete="--pl") == []
    assert "--token" in complete("call", "weather", incomplete="--")
    assert complete("call", "allowance_list", "--server", "https://data.example", incomplete="--st") == []
    assert complete("call", "no_such_tool", incomplete="--pl") == []
