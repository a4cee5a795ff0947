"""`install` and `uninstall` on a scratch home: what is written, said, and left alone."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.size import a_share
from toolserver.cli.install import HOSTS, ConfigDamaged, plan_entry
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


ENTRY = {"command": "/bin/python", "args": ["stdio"]}
OTHER = {"command": "other"}


def written(host, home):
    return json.loads(host.find_file(home).read_text())


@pytest.mark.parametrize("name", HOSTS)
def test_a_file_that_is_not_there_is_made_with_the_entry(tmp_path, name):
    host = HOSTS[name]
    change = plan_entry(host, tmp_path, "x", ENTRY)
    assert (change.before, change.is_needed, change.apply()) == (None, True, None)
    (entry,) = written(host, tmp_path)[host.member].values()
    assert entry == {**({"type": "stdio"} if host.typed else {}), **ENTRY}
    assert not plan_entry(host, tmp_path, "x", ENTRY).is_needed


@pytest.mark.parametrize("name", HOSTS)
def test_everything_else_stays_and_a_copy_is_kept(tmp_path, name):
    host = HOSTS[name]
    path = host.find_file(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({"theme": "ü", host.member: {"other": OTHER}})
    path.write_text(before)
    copy = plan_entry(host, tmp_path, "x", ENTRY).apply()
    assert copy.read_text() == before
    assert copy.stat().st_mode & 0o077 == 0
    now = written(host, tmp_path)
    assert (now["theme"], now[host.member]["other"], list(now[host.member])) == ("ü", OTHER, ["other", "x"])

    plan_entry(host, tmp_path, "x", None).apply()
    assert written(host, tmp_path) == json.loads(before)
    assert not plan_entry(host, tmp_path, "x", None).is_needed


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []  x', '{"mcpServers": [1]}', "// a comment\n{}"])
def test_a_damaged_file_is_left_alone(tmp_path, text):
    path = HOSTS["cursor"].find_file(tmp_path)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigDamaged, match="was left unchanged"):
        plan_entry(HOSTS["cursor"], tmp_path, "x", ENTRY)
    assert path.read_text() == text


def test_an_empty_file_is_an_empty_configuration(tmp_path):
    path = HOSTS["cursor"].find_file(tmp_path)
    path.parent.mkdir()
    path.write_text(" \n")
    plan_entry(HOSTS["cursor"], tmp_path, "x", ENTRY).apply()
    assert written(HOSTS["cursor"], tmp_path) == {"mcpServers": {"x": ENTRY}}


def test_a_link_stays_a_link(tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    path = HOSTS["claude-code"].find_file(tmp_path)
    path.symlink_to(real)
    plan_entry(HOSTS["claude-code"], tmp_path, "x", ENTRY).apply()
    assert path.is_symlink()
    assert "x" in json.loads(real.read_text())["mcpServers"]


def test_files_are_where_each_system_has_them(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    places = {}
    for system in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", system)
        places[system] = HOSTS["claude-desktop"].find_file(tmp_path).relative_to(tmp_path).as_posix()
    assert places == {
        "linux": ".config/Claude/claude_desktop_config.json",
        "darwin": "Library/Application Support/Claude/claude_desktop_config.json",
        "win32": "AppData/Roaming/Claude/claude_desktop_config.json",
    }
