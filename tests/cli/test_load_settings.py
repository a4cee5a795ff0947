"""Flags, environment and file become settings; what is wrong is said in one message without values."""

import logging
import sqlite3
from pathlib import Path

import click
import pytest

from toolserver.cli.load_settings import explain_errors, find_data_dir, find_ledger, prepare_settings, settings_from
from toolserver.errors import ToolserverError
from toolserver.money.ledger.sqlite import FILE


@pytest.fixture
def root_logger():
    """The logger as it was: setting up logs changes it for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def test_a_flag_wins_over_the_environment_and_one_not_given_does_not(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PORT", "1")
    assert settings_from(port=2).port == 2
    assert settings_from(port=None).port == 1


def test_every_wrong_setting_is_named_without_its_value(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_LEDGER__SECRET", "a-secret-too-short")
    monkeypatch.setenv("TOOLSERVER_PORT", "70000")
    with pytest.raises(click.ClickException) as refused:
        settings_from()
    first, *wrong = refused.value.message.splitlines()
    assert first == "invalid settings:"
    assert sorted(line.split(":")[0].strip() for line in wrong) == ["ledger.secret", "port"]
    assert "a-secret" not in refused.value.message
    assert "70000" not in refused.value.message


def test_an_unknown_name_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PROT", "1")
    with pytest.raises(click.ClickException, match="TOOLSERVER_PROT is not a setting"):
        settings_from()


@pytest.mark.usefixtures("root_logger")
def test_the_data_directory_is_created_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a" / "b"
    assert prepare_settings(data_dir=folder).data_dir == folder
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("root_logger")
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


@pytest.mark.usefixtures("root_logger")
def test_a_data_directory_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(click.ClickException, match=r"cannot be created: .*file/data: a part of the path is a file"):
        prepare_settings(data_dir=tmp_path / "file" / "data")


def test_the_data_directory_is_the_flag_s_or_else_the_setting_s(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    assert find_data_dir(Path("/given")) == Path("/given")
    assert find_data_dir(None) == tmp_path


def test_a_ledger_is_found_or_its_folder_is_named(tmp_path):
    with pytest.raises(click.ClickException, match=f"there is no ledger in {tmp_path}"):
        find_ledger(tmp_path)
    (tmp_path / FILE).touch()
    assert find_ledger(tmp_path) == tmp_path / FILE


@pytest.mark.parametrize("error", [ToolserverError("why"), ValueError("why"), FileNotFoundError("why")])
def test_an_expected_error_becomes_its_own_sentence(error):
    with pytest.raises(click.ClickException) as refused, explain_errors():
        raise error
    assert refused.value.message == "why"


@pytest.mark.parametrize("error", [KeyError("a fault"), sqlite3.OperationalError("a fault")])
def test_a_fault_of_ours_is_not_hidden(error):
    with pytest.raises(type(error)), explain_errors():
        raise error
