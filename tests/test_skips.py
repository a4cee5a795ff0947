"""Test the report of skipped tests, and that a skip fails a run when everything is required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parent.parent
MODULE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_needs(n):
    pytest.skip("no such program")

@pytest.mark.skip(reason="never")
def test_never(): ...

def test_good(): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "test_none.py").write_text("import pytest\npytest.skip('elsewhere', allow_module_level=True)\n")
    return tmp_path


def ran(folder: Path, *chosen: str, **named: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest with this project's conftest in a folder of other tests."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "none.ini"]
    environment = {name: value for name, value in os.environ.items() if name != "REQUIRE"} | named
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    (folder / "none.ini").write_text("[pytest]\n")
    return subprocess.run([*words, *chosen], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def test_a_run_names_each_reason_once_with_its_count(folder):
    done = ran(folder)

    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["skipped,", "9:"] in lines
    assert "6 no such program (test_one.py and 1 more files)".split() in lines
    assert "2 never (test_one.py and 1 more files)".split() in lines
    assert "1 elsewhere (test_none.py)".split() in lines


@pytest.mark.slow("it starts pytest")
def test_where_everything_is_required_a_skipped_test_is_a_failure(folder):
    done = ran(folder, REQUIRE="all")

    assert done.returncode == 1
    assert "skipped, 9 - with REQUIRE=all 9 of them are a failure:" in done.stdout


@pytest.mark.slow("it starts pytest")
@pytest.mark.parametrize(("asked", "code"), [("0", 0), ("1", 1)])
def test_an_extra_that_is_not_here_is_reported_unless_it_was_asked_for(folder, asked, code):
    (folder / "test_one.py").write_text(
        "import pytest\nfrom tests.extras import without_extra\n"
        "def test_good(): ...\n"
        "@pytest.mark.extra('HOSTS')\ndef test_hosts(): without_extra('HOSTS')\n"
    )

    done = ran(folder, "test_one.py", REQUIRE="all", HOSTS=asked)

    assert done.returncode == code, done.stdout
    assert ("skipped, 1:" in done.stdout) == (code == 0)
    assert ("HOSTS is set, but what it needs is missing" in done.stdout) == (code == 1)


@pytest.mark.slow("it starts pytest")
def test_where_nothing_is_skipped_nothing_is_said_and_nothing_fails(folder):
    done = ran(folder, "-k", "good", "test_one.py", REQUIRE="all")

    assert done.returncode == 0
    assert "skipped" not in done.stdout


def test_an_account_of_many_reasons_is_short():
    lines = conftest.account({f"reason {n}": ["a.py::test_x"] for n in range(100)})

    assert len(lines) == conftest.REASONS_SHOWN + 2
    assert lines[-1].endswith("and for 88 other reasons")
