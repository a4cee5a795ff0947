"""Where a command finds its data directory and its ledger."""

from pathlib import Path

import click
import pytest

from toolserver.cli.find_ledger import find_data_dir, find_ledger
from toolserver.money.ledger.store import FILE


def test_the_data_directory_is_the_flag_s_or_else_the_setting_s(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    assert find_data_dir(Path("/given")) == Path("/given")
    assert find_data_dir(None) == tmp_path


def test_a_ledger_is_found_or_its_folder_is_named(tmp_path):
    with pytest.raises(click.ClickException, match=f"there is no ledger in {tmp_path}"):
        find_ledger(tmp_path)
    (tmp_path / FILE).touch()
    assert find_ledger(tmp_path) == tmp_path / FILE
