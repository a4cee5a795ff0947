"""`install` and `uninstall` on a scratch home: what is written, said, and left alone."""

import json
import subprocess
import sys
import tomllib

import pytest
import yaml
from click.testing import CliRunner

from tests.size import a_share
from toolserver.cli.install import DEFERRING, HOSTS, ConfigDamaged, plan_entry
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
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, words)


def entry_of(host, home):
    return written(HOSTS[host], home)[HOSTS[host].member]["toolserver"]


def written(host, home):
    text = host.find_file(home).read_text()
    return {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}[host.form](text)


def started(entry):
    """The program that a host starts, with its arguments, whatever the host calls them."""
    command = entry.get("command", entry.get("cmd"))
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize("host", a_share(HOSTS, len(HOSTS)))
def test_what_is_written_starts_the_server_in_an_empty_environment(home, host):
    done = run("install", host)
    assert done.exit_code == 0, done.output
    assert str(HOSTS[host].find_file(home)) in done.output
    entry = entry_of(host, home)
    answered = subprocess.run(
        started(entry),
        input=LIST,
        capture_output=True,
        text=True,
        cwd="/",
        env={"HOME": str(home)},
        timeout=60,
        check=True,
    )
    last = json.loads(answered.stdout.splitlines()[-1])
    listed = {tool["name"] for tool in last["result"]["tools"]}
    assert ("btc_price" in listed, "air_quality" in listed) == (True, host in DEFERRING)


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
    assert f"{path} is not plain JSON" in done.output
    assert "add this under `mcpServers` yourself" in done.output
    assert path.read_text() == "{oops"


def test_an_address_over_which_tokens_could_be_read_is_refused(home):
    done = run("install", "cursor", "--server", "http://data.example")
    assert done.exit_code == 1
    assert "https" in done.output
    assert list(home.iterdir()) == []


ENTRY = {"command": "/bin/python", "args": ["stdio"]}
OTHER = {"command": "other"}


@pytest.mark.parametrize("name", HOSTS)
def test_a_file_that_is_not_there_is_made_with_the_entry(home, name):
    host = HOSTS[name]
    change = plan_entry(host, home, "x", ENTRY)
    assert (change.before, change.is_needed, change.apply()) == (None, True, None)
    (entry,) = written(host, home)[host.member].values()
    assert (entry, started(entry)) == (host.shape(ENTRY), ["/bin/python", "stdio"])
    assert not plan_entry(host, home, "x", ENTRY).is_needed


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.form == "json"])
def test_everything_else_stays_and_a_copy_is_kept(home, name):
    host = HOSTS[name]
    path = host.find_file(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({"theme": "ü", host.member: {"other": OTHER}})
    path.write_text(before)
    copy = plan_entry(host, home, "x", ENTRY).apply()
    assert copy.read_text() == before
    assert copy.stat().st_mode & 0o077 == 0
    now = written(host, home)
    assert (now["theme"], now[host.member]["other"], list(now[host.member])) == ("ü", OTHER, ["other", "x"])

    plan_entry(host, home, "x", None).apply()
    assert written(host, home) == json.loads(before)
    assert not plan_entry(host, home, "x", None).is_needed


CODEX = """# my settings
model = "gpt"  # the best

[mcp_servers.other]
command = "other"

[mcp_servers.other.env]
A = "[mcp_servers.x]"

[profiles.fast]
model = "small"
"""
GOOSE = """# my settings
GOOSE_MODEL: gpt  # the best
extensions:
    # what I added
    other:
        enabled: true
        type: stdio
        cmd: other
GOOSE_MODE: auto
"""


@pytest.mark.parametrize(("name", "text"), [("codex", CODEX), ("goose", GOOSE)])
def test_comments_and_layout_stay_as_they_are(home, name, text):
    host = HOSTS[name]
    path = host.find_file(home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = written(host, home)

    plan_entry(host, home, "x", ENTRY).apply()
    now = written(host, home)
    assert now == {**before, host.member: {**before[host.member], "x": host.shape(ENTRY)}}
    assert [line for line in text.splitlines() if line not in path.read_text().splitlines()] == []

    plan_entry(host, home, "x", {"command": "/bin/other", "args": []}).apply()
    assert started(written(host, home)[host.member]["x"]) == ["/bin/other"]
    plan_entry(host, home, "x", None).apply()
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codex", "[mcp_servers]\nx = {command = 1}\n"),
        ("codex", "mcp_servers = 1\n"),
        ("codex", "not toml"),
        ("goose", "extensions: {other: {cmd: other}}\n"),
        ("goose", "extensions: [1]\n"),
        ("goose", "a: b: c\n"),
        ("zed", '{ // mine\n "theme": "dark" }\n'),
    ],
)
def test_what_cannot_be_edited_safely_is_left_alone_and_can_be_pasted(home, name, text):
    path = HOSTS[name].find_file(home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ConfigDamaged, match="was left unchanged"):
        plan_entry(HOSTS[name], home, "x", ENTRY)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["extensions: {}\n", "extensions:\n", "GOOSE_MODE: auto\n", "# nothing yet\n"])
def test_an_empty_list_of_extensions_gets_the_entry(home, text):
    path = HOSTS["goose"].find_file(home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    plan_entry(HOSTS["goose"], home, "x", ENTRY).apply()
    assert written(HOSTS["goose"], home)["extensions"] == {"x": HOSTS["goose"].shape(ENTRY)}


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []  x', '{"mcpServers": [1]}', "// a comment\n{}"])
def test_a_damaged_file_is_left_alone(home, text):
    path = HOSTS["cursor"].find_file(home)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigDamaged, match="was left unchanged"):
        plan_entry(HOSTS["cursor"], home, "x", ENTRY)
    assert path.read_text() == text


def test_an_empty_file_is_an_empty_configuration(home):
    path = HOSTS["cursor"].find_file(home)
    path.parent.mkdir()
    path.write_text(" \n")
    plan_entry(HOSTS["cursor"], home, "x", ENTRY).apply()
    assert written(HOSTS["cursor"], home) == {"mcpServers": {"x": ENTRY}}


def test_a_link_stays_a_link(home):
    real = home / "dotfiles.json"
    real.write_text("{}")
    path = HOSTS["claude-code"].find_file(home)
    path.symlink_to(real)
    plan_entry(HOSTS["claude-code"], home, "x", ENTRY).apply()
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


@pytest.mark.parametrize("name", ["cursor", "codex", "goose"])
def test_what_a_person_added_to_our_entry_stays(home, name):
    run("install", name)
    path = HOSTS[name].find_file(home)
    text = path.read_text()
    if name == "cursor":
        config = json.loads(text)
        config["mcpServers"]["toolserver"] |= {"env": {"TOOLSERVER_TOKEN": "x"}, "disabled": False}
        path.write_text(json.dumps(config))
    elif name == "codex":
        path.write_text(f'{text}startup_timeout_sec = 30\n[mcp_servers.toolserver.env]\n"TOOLSERVER_TOKEN" = "x"\n')
    else:
        path.write_text(f"{text}    envs:\n      TOOLSERVER_TOKEN: x\n")
    before = entry_of(name, home)
    ran = run("install", name, "--server", "https://data.example")

    assert ran.exit_code == 0, ran.output
    after = entry_of(name, home)
    assert "https://data.example" in json.dumps(after)
    assert {key: after[key] for key in before if key not in ("args", "command", "cmd")} == {
        key: value for key, value in before.items() if key not in ("args", "command", "cmd")
    }


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": 1e999}', '{"a": NaN}', "[" * 100_000, '{"mcpServers": {"x": {}, "x": {"y": 1}}}'],
    ids=range(5),
)
def test_what_could_not_be_written_again_is_left_alone(home, text):
    path = HOSTS["cursor"].find_file(home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ran = run("install", "cursor")

    assert (ran.exit_code, path.read_text()) == (1, text)
    assert "left unchanged" in ran.output


def test_a_half_of_a_character_stays_what_it_is(home):
    path = HOSTS["cursor"].find_file(home)
    path.parent.mkdir(parents=True)
    path.write_text('{"title": "\\ud83d"}')

    assert run("install", "cursor").exit_code == 0
    assert json.loads(path.read_text())["title"] == "\ud83d"
