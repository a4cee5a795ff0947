"""Packages of another project that hide ours: the start says which, where they are, and what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolserver.cli.main import PACKAGES, describe_hidden


def run_toolserver(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *options, "-m", "toolserver", "tools"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_of_the_working_directory_that_hides_ours_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "__init__.py"
    package.parent.mkdir()
    package.touch()
    done = run_toolserver(tmp_path)

    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert f"{name} ({package})" in line
    assert "python -P -m toolserver" in line
    assert [other for other in PACKAGES if f"{other} (" in line] == [name]


def test_the_remedy_in_that_line_helps(tmp_path: Path) -> None:
    (tmp_path / "tools.py").touch()

    assert run_toolserver(tmp_path).returncode == 1
    done = run_toolserver(tmp_path, "-P")
    assert done.returncode == 0, done.stderr
    assert "btc_price" in done.stdout


def test_folders_of_those_names_that_are_no_packages_hide_nothing(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()

    assert run_toolserver(tmp_path).returncode == 0
    assert describe_hidden() is None
