"""An entry is added to a host's file and taken out again; everything else in the file stays."""

import json
import sys

import pytest

from toolserver.cli.install import HOSTS, ConfigDamaged, plan_entry

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
