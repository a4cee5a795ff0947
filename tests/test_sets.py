"""Test which tests a run takes, and what it reports about the others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sets

ROOT = Path(__file__).resolve().parent.parent
XDIST = ("-p", "xdist", "-n", "2")
WAYS = [
    pytest.param((), id="one process"),
    pytest.param(XDIST, id="two workers", marks=pytest.mark.slow("it starts pytest")),
    pytest.param((*XDIST, "-p", "tests.forks"), id="two forks"),
]
MODULE = """
import pytest

def test_quick(): ...

@pytest.mark.slow("it counts to a million")
def test_slow(): ...

@pytest.mark.live
@pytest.mark.parametrize("n", range(3))
def test_live(n): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n live: l\n slow(reason): s\n", encoding="utf-8"
    )
    return tmp_path


def ran(folder: Path, *words: str, code: int = 0, **named: str) -> str:
    """What a run says, in this process or in two others."""
    plugins = [word for name in ("tests.cpu_time", "tests.sets", "no:cacheprovider") for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *words]
    environment = {name: value for name, value in os.environ.items() if name not in {"REQUIRE", "CPU"}} | named
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("words", WAYS)
def test_the_fast_set_leaves_out_what_is_slow_or_live_and_says_why(folder, words):
    said = ran(folder, *words)

    assert "1 passed" in said
    assert "not in the fast set, 4 - REQUIRE=all runs them" in said
    assert "3  live: starts a real server" in said
    assert "1  slow: it counts to a million" in said
    assert "CPU" not in said


@pytest.mark.slow("it starts pytest")
@pytest.mark.parametrize("words", WAYS)
def test_the_cpu_of_a_run_is_told_to_who_asks_and_fails_nothing(folder, words):
    (folder / "conftest.py").write_text("import tests.cpu_time as c\nc.BUDGET_S = 0.001\n")

    said = ran(folder, *words, CPU="1")

    assert re.search(r"^\d+ s of CPU of the 0 that the fast set may take; most of them:$", said, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d  tests/test_one.py$", said, re.MULTILINE)
    assert ("handing out tests" in said) == bool(words)


@pytest.mark.slow("it starts pytest")
@pytest.mark.parametrize("words", WAYS)
def test_where_everything_is_required_everything_runs(folder, words):
    said = ran(folder, *words, REQUIRE="all")

    assert "5 passed" in said
    assert "not in the fast set" not in said


@pytest.mark.slow("it starts pytest")
@pytest.mark.parametrize(
    ("words", "count"), [(("tests/test_one.py",), 5), (("-m", "live"), 3), (("-k", "slow or live"), 4)]
)
def test_what_the_command_line_names_runs_whole(folder, words, count):
    assert f"{count} passed" in ran(folder, *words)


@pytest.mark.parametrize(
    ("everything", "cores", "workers"), [(False, 1, 1), (False, 2, 3), (False, 4, 6), (True, 1, 2), (True, 2, 5)]
)
def test_there_are_more_processes_than_cores(everything, cores, workers):
    assert sets.count_workers(cores, everything=everything) == workers
