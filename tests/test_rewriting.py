"""Test that files are rewritten while others are collected, and that pytest takes what was written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rewriting import bytecode_of, find_test_files, is_rewritten, rewrite_missing

ROOT = Path(__file__).resolve().parent.parent
FIRST = """
import time
from pathlib import Path

def wait():
    for _ in range(600):
        if written := [*Path("__pycache__").glob("test_z.*-pytest-*.pyc")]:
            return written
        time.sleep(0.05)

WRITTEN = wait()  # test_z is imported only after this

def test_it():
    assert WRITTEN
"""
FAILING = "def test_two():\n    two = 2\n    assert two == 3\n"


@pytest.fixture
def bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode is kept here, and beside its file, whatever this run was told."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A whole run of this folder's tests, in two processes."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    names = ("xdist", "tests.cpu_time", "tests.sets", "tests.forks", "tests.rewriting", "no:cacheprovider")
    plugins = [word for name in names for word in ("-p", name)]
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    surroundings |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *plugins, *words]
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="tests are forked on Linux only")
def test_what_is_collected_last_is_rewritten_meanwhile(tmp_path):
    (tmp_path / "test_a.py").write_text(FIRST, encoding="utf-8")
    (tmp_path / "test_z.py").write_text("def test_z(): ...\n", encoding="utf-8")

    done = run(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="tests are forked on Linux only")
def test_a_run_of_named_files_rewrites_no_other(tmp_path, bytecode):
    for name in ("a", "z"):
        (tmp_path / f"test_{name}.py").write_text("def test_it(): ...\n", encoding="utf-8")

    assert run(tmp_path, "test_a.py").returncode == 0

    assert [is_rewritten(file) for file in find_test_files(tmp_path)] == [True, False]


def test_pytest_takes_what_was_rewritten_until_the_file_changes(tmp_path, bytecode, request):
    file = tmp_path / "test_one.py"
    file.write_text(FAILING, encoding="utf-8")

    rewrite_missing(request.config, [file])

    assert is_rewritten(file)
    written = bytecode_of(file).stat().st_ino
    done = run(tmp_path)
    assert "assert 2 == 3" in done.stdout  # which only a rewritten file can say
    assert bytecode_of(file).stat().st_ino == written
    file.write_text(FAILING.replace("3", "4"), encoding="utf-8")
    assert not is_rewritten(file)


def test_a_file_with_an_error_hides_no_other_and_is_left_to_pytest(tmp_path, bytecode, request):
    (tmp_path / "test_a.py").write_text("def test_(:\n", encoding="utf-8")
    (tmp_path / "test_z.py").write_text("def test_z(): ...\n", encoding="utf-8")
    files = [*find_test_files(tmp_path)]

    rewrite_missing(request.config, files)

    assert [is_rewritten(file) for file in files] == [False, True]
    done = run(tmp_path)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "1 error" in done.stdout
    assert "Traceback" not in done.stderr


def test_environments_and_packages_of_others_are_no_test_files(tmp_path):
    for name in ("test_b.py", "a/test_a.py", "a/helper.py", ".venv/test_c.py", "node_modules/test_d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert [*find_test_files(tmp_path)] == [tmp_path / "test_b.py", tmp_path / "a" / "test_a.py"]
