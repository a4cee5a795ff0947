"""Options, environment and file become settings. A wrong one is named with its place, and never with its value."""

import logging
import re

import click
import pytest

from toolserver.cli.load_settings import find_line, list_settings, name_variable, prepare_settings, settings_from


def test_a_flag_wins_over_the_environment_and_one_not_given_does_not(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PORT", "1")
    assert settings_from(port=2).port == 2
    assert settings_from(port=None).port == 1


def test_every_wrong_setting_is_named_without_its_value(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_LEDGER__SECRET", "a-secret-too-short")
    monkeypatch.setenv("TOOLSERVER_PORT", "70000")
    with pytest.raises(click.ClickException) as refused:
        settings_from()
    (line,) = refused.value.message.splitlines()
    assert re.fullmatch(r"invalid settings: (ledger\.secret|port): .*; (ledger\.secret|port): .*", line)
    assert {"ledger.secret", "port"} <= set(re.findall(r"[\w.]+(?=: )", line))
    assert line.endswith(
        "(TOOLSERVER_LEDGER__SECRET). Correct or remove them: docs/settings.md describes every setting"
    )
    assert "a-secret" not in refused.value.message
    assert "70000" not in refused.value.message


def test_an_unknown_name_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PROT", "1")
    with pytest.raises(click.ClickException, match="TOOLSERVER_PROT is not a setting"):
        settings_from()


def test_the_data_directory_is_created_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a" / "b"
    assert prepare_settings(data_dir=folder).data_dir == folder
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_first_run_says_where_its_folder_is_and_a_second_does_not(tmp_path, capsys):
    for _ in range(2):
        prepare_settings(data_dir=tmp_path / "data")
    (told,) = capsys.readouterr().err.splitlines()
    assert "first run" in told
    assert str(tmp_path / "data") in told


def test_logs_are_set_up_as_the_settings_say(root_logger, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_LOGS__LEVEL", "error")
    prepare_settings(data_dir=tmp_path)
    assert root_logger.level == logging.ERROR


def test_a_data_directory_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(click.ClickException, match=r"cannot be created: .*file/data: a part of the path is a file"):
        prepare_settings(data_dir=tmp_path / "file" / "data")


TOML = """# ours
prot = 1
server = "nginx"

[limits]  # of callers
daly = 3
spacing_scope.a = 1

[payments]
"rpc_url" = ["x"]
"""
PLACES = {"prot": 2, "server": 3, "limits": 5, "limits.daly": 6, "limits.spacing_scope": 7, "payments.rpc_url": 10}


def refusal():
    with pytest.raises(click.ClickException) as refused:
        settings_from()
    return refused.value.message


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TOOLSERVER_PROT", "TOOLSERVER_PORT"),
        ("TOOLSERVER_DATADIR", "TOOLSERVER_DATA_DIR"),
        ("TOOLSERVER_BASEURL", "TOOLSERVER_BASE_URL"),
        ("TOOLSERVER_PAYMENT__ENABLED", "TOOLSERVER_PAYMENTS__ENABLED"),
        ("TOOLSERVER_UPSTREAMS__VIA", "TOOLSERVER_UPSTREAM__VIA"),
    ],
)
def test_an_unknown_variable_gets_the_nearest_name(monkeypatch, name, near):
    monkeypatch.setenv(name, "a-secret")
    assert refusal() == f"{name} is not a setting; did you mean {near}?"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("limits.daly", "did you mean limits.daily?"),
        ("limits.enable", "did you mean limits.enabled?"),
        ("payments.rpc_url", "did you mean payments.rpc_urls?"),
        ("sources.licence_polcy", "did you mean sources.licence_policy?"),
        ("webhooks.allow_loopbacks", "did you mean webhooks.allow_loopback?"),
    ],
)
def test_an_unknown_member_gets_the_nearest_name_and_its_variable(monkeypatch, name, told):
    monkeypatch.setenv(name_variable(name), "a-secret")
    wrong = f"{name}: is not a setting, {told} ({name_variable(name)})"
    assert refusal() == f"invalid settings: {wrong}. Correct or remove it: docs/settings.md describes every setting"


def test_a_name_that_is_near_to_none_gets_no_suggestion(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_QQQ", "1")
    assert refusal() == "TOOLSERVER_QQQ is not a setting; remove it: docs/settings.md describes every setting"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("limits", "limits: is a table, set its members one by one, such as limits.enabled (TOOLSERVER_LIMITS)"),
        (
            "limits.trusted_proxies",
            'limits.trusted_proxies: is not JSON, write ["…", "…"] (TOOLSERVER_LIMITS__TRUSTED_PROXIES)',
        ),
        ("sources.keys", 'sources.keys: is not JSON, write {"name": "…"} (TOOLSERVER_SOURCES__KEYS)'),
    ],
)
@pytest.mark.parametrize("text", ["a-secret", "4711"])
def test_what_must_be_a_list_or_a_table_says_how_it_is_written(monkeypatch, name, told, text):
    monkeypatch.setenv(name_variable(name), text)
    line = refusal()
    assert text not in line
    assert line.startswith(f"invalid settings: {name}: ")
    if text == "a-secret" or name == "limits":
        assert told in line


def test_in_the_file_the_line_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolserver.toml").write_text("[limits]\ndaly = 4711\n[logs]\nlevel = 4711\n")
    told = refusal()
    assert "limits.daly: is not a setting, did you mean limits.daily? (toolserver.toml, line 2)" in told
    assert "(toolserver.toml, line 4)" in told
    assert "4711" not in told


def test_a_file_that_is_no_toml_is_named_with_the_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolserver.toml").write_text("port = 1\n[limits\n")
    told = refusal()
    assert told.startswith("toolserver.toml is not TOML: ")
    assert "line 2" in told


@pytest.mark.parametrize("name", PLACES)
def test_a_line_is_found_in_its_table(name):
    assert find_line(TOML, name) == PLACES[name]


def test_what_stands_nowhere_has_no_line():
    assert find_line(TOML, "daly") is None


def test_settings_are_listed_with_their_members():
    names = set(list_settings())
    assert {"port", "limits", "limits.daily", "payments.rpc_urls", "sources.licence_policy"} <= names
    assert name_variable("limits.daily") == "TOOLSERVER_LIMITS__DAILY"
