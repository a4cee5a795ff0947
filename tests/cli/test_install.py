"""`install` and `uninstall` on a scratch home: what is written, said, and left alone."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.size import a_share
from toolserver.cli.install import HOSTS
from toolserver.cli.main import main

LIST = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"test","version":"1"}}}\n'
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, words)


def entry_of(host, home):
    return json.loads(HOSTS[host].find_file(home).read_text())[HOSTS[host].member]["toolserver"]


@pytest.mark.parametrize("host", a_share(HOSTS, len(HOSTS)))
def test_what_is_written_starts_the_server_in_an_empty_environment(home, host):
    done = run("install", host)
    assert done.exit_code == 0, done.output
    assert str(HOSTS[host].find_file(home)) in done.output
    entry = entry_of(host, home)
    answered = subprocess.run(
        [entry["command"], *entry["args"]],
        input=LIST,
        capture_output=True,
        text=True,
        cwd="/",
        env={"HOME": str(home)},
        timeout=60,
        check=True,
    )
    last = json.loads(answered.stdout.splitlines()[-1])
    assert "btc_price" in {tool["name"] for tool in last["result"]["tools"]}


def test_a_second_run_changes_nothing(home):
    run("install", "cursor")
    path = HOSTS["cursor"].find_file(home)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    done = run("install", "cursor")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert "Cursor already has it" in done.output
    assert len(list(path.parent.iterdir())) == 1


def test_a_dry_run_prints_the_file_and_writes_none(home):
    done = run("install", "vscode", "--dry-run", "--server", "https://data.example/api/mcp", "--toolset", "all")
    told = json.loads(done.output.split("would be:\n")[1])
    assert told["servers"]["toolserver"] == {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-m", "toolserver", "stdio", "--server", "https://data.example", "--toolset", "all"],
    }
    assert list(home.iterdir()) == []


def test_it_is_taken_out_again(home):
    assert "has no configuration" in run("uninstall", "cursor").output
    run("install", "cursor")
    assert run("uninstall", "cursor").exit_code == 0
    assert json.loads(HOSTS["cursor"].find_file(home).read_text()) == {"mcpServers": {}}
    assert "does not have it" in run("uninstall", "cursor").output


def test_a_damaged_file_is_left_alone_with_a_message(home):
    path = HOSTS["claude-code"].find_file(home)
    path.write_text("{oops")
    done = run("install", "claude-code")
    assert done.exit_code == 1
    assert f"{path} is not JSON" in done.output
    assert path.read_text() == "{oops"


def test_an_address_over_which_tokens_could_be_read_is_refused(home):
    done = run("install", "cursor", "--server", "http://data.example")
    assert done.exit_code == 1
    assert "https" in done.output
    assert list(home.iterdir()) == []
