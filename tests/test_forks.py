"""Test that forked processes run every test once and hide nothing: no failure, no crash, nothing left behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tests are forked on Linux only")
ROOT = Path(__file__).resolve().parent.parent
SHARED = """
import os
import pytest

@pytest.fixture(scope="session")
def shared(request):
    yield os.getpid()
    with open("ended", "a") as file:
        file.write(f"{os.getpid()}\\n")

@pytest.fixture(scope="module")
def of_module(request):
    yield
    with open("modules", "a") as file:
        file.write(f"{request.node.name}\\n")

@pytest.fixture(autouse=True)
def told(shared, of_module, request):
    with open("ran", "a") as file:
        file.write(f"{request.node.name} {shared}\\n")
"""


def run(folder: Path, *words: str, **modules: str) -> subprocess.CompletedProcess[str]:
    """A run of these modules in two processes."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n live: l\n slow(reason): s\n", encoding="utf-8")
    (folder / "conftest.py").write_text(SHARED, encoding="utf-8")
    for name, content in modules.items():
        (folder / f"test_{name}.py").write_text(content, encoding="utf-8")
    plugins = [word for name in ("xdist", "tests.cpu_time", "tests.sets", "tests.forks") for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *plugins, *words]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "REQUIRE": "all"}
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_each_test_runs_once_and_a_crash_fails_the_test_that_it_ends_and_no_other(tmp_path):
    done = run(
        tmp_path,
        a="def test_1(): print('said by a')\ndef test_2(): assert not 'wrong', 'it is wrong'\ndef test_3(): ...",
        b="import os\ndef test_4(): ...\ndef test_5(): os._exit(7)\ndef test_6(): ...",
        c="import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test_7(n): assert n != 3, 'three'",
        d="import pytest, warnings\ndef test_8(): warnings.warn('mind this')\ndef test_9(): pytest.skip('not here')",
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^3 failed, 9 passed, 1 skipped, 1 warning in ", done.stdout, re.MULTILINE), done.stdout
    for message in ("it is wrong", "the process that ran it ended with 7", "three", "mind this", "test_b.py::test_5"):
        assert message in done.stdout
    assert "said by a" not in done.stdout
    ran = [line.split() for line in lines(tmp_path / "ran")]
    assert sorted(name for name, _ in ran) == sorted([*(f"test_{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9)), *rows(7, 5)])
    assert all(len({pid for name, pid in ran if name in module}) == 1 for module in (["test_1", "test_3"], rows(7, 5)))
    crashed = next(pid for name, pid in ran if name == "test_5")
    assert sorted(lines(tmp_path / "ended")) == sorted({pid for _, pid in ran} - {crashed})
    assert sorted(lines(tmp_path / "modules")) == [f"test_{name}.py" for name in "abcd"]


def rows(test: int, count: int) -> list[str]:
    return [f"test_{test}[{n}]" for n in range(count)]


@pytest.mark.parametrize(
    ("words", "content", "status", "said"),
    [
        (["-x"], "def test_1(): assert False, 'first'\n" + "def test_2(): ...\n", 1, "stopping after 1 failures"),
        ([], "import pytest\ndef test_1(): pytest.exit('enough')\ndef test_2(): ...", 2, "enough"),
        ([], "import nothing_of_this_name", 2, "error"),
        (
            ["-W", "error"],
            "import pytest, socket\nSOCKETS = [socket.socket()]\n"
            "@pytest.fixture(scope='session')\ndef late():\n yield\n assert not SOCKETS, 'somebody left a socket'\n"
            "def test_1(late): ...",
            3,
            "somebody left a socket",
        ),
    ],
    ids=["-x", "exit", "collection", "session"],
)
def test_a_run_that_ends_early_says_so_and_fails(tmp_path, words, content, status, said):
    done = run(tmp_path, *words, a=content, b="def test_3(): ...")

    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
    assert not (tmp_path / "ran").exists() or "test_2" not in (tmp_path / "ran").read_text(encoding="utf-8")


def test_what_tests_share_ends_before_their_folder_may_be_cleared_away(tmp_path):
    folder = "import pytest\n@pytest.fixture(scope='session')\ndef folder(tmp_path_factory):\n"
    lock = " lock = tmp_path_factory.getbasetemp() / '.lock'\n yield\n assert lock.exists(), 'it is free already'\n"
    done = run(tmp_path, a=f"{folder}{lock}def test_1(folder): ...")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow("it starts pytest")
def test_a_test_that_takes_too_long_says_what_its_threads_did(tmp_path):
    slow = "@pytest.mark.timeout(1)\ndef test_1():\n threading.Thread(target=late).start()\n late()"
    late = "import pytest, threading, time\ndef late(): time.sleep(3)"
    done = run(tmp_path, "-p", "pytest_timeout", a=f"{late}\n{slow}")

    assert done.returncode == 1, done.stdout + done.stderr
    for said in ("Failed: Timeout", "Captured stderr", "Stack of Thread-1 (late)"):
        assert said in done.stdout


@pytest.mark.slow("it starts pytest")
def test_xdist_runs_them_where_it_is_asked_for(tmp_path):
    done = run(tmp_path, "--dist", "load", a="def test_1(worker_id): assert worker_id.startswith('gw')")

    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
