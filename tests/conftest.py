"""Provide the fixtures that every test may use, and report skipped tests."""

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.extras import PREFIX, find_samples, reason_of, skip_unless_asked_for
from tests.idle_time import IdleLoop
from tests.size import EVERYTHING
from tests.surroundings import SEEN, clean_surroundings, name_keys_in_sight
from tests.tools import desk

pytest_plugins = [
    "tests.certificates",
    "tests.cpu_time",
    "tests.outcomes",
    "tests.sets",
    "tests.forks",
    "tests.rewriting",
    "tests.postgres",
    "tests.quick_files",
    "tests.redis_server",
]

RECURSION = sys.getrecursionlimit()
NOBODYS_HOME = tempfile.TemporaryDirectory(prefix="toolserver-home-", ignore_cleanup_errors=True)
_keys = {SEEN: names} if (names := name_keys_in_sight()) else {}
# No test, and no program that one starts, finds a person's keys or data.
_clean = _keys | clean_surroundings(NOBODYS_HOME.name)
os.environ.clear()
os.environ.update(_clean)
REASONS_SHOWN = 12


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": IdleLoop}


@pytest.fixture
def sample() -> Callable[[str], bytes]:
    """Reads a recorded upstream body by `source/file`. They are not part of the project."""

    def read(name: str) -> bytes:
        return (find_samples() / name).read_bytes()

    return read


@pytest.fixture
def compose() -> Callable[..., object]:
    """Runs a tool function against the simulated world; see tests/tools/desk.py."""
    return desk.compose


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The chain's libraries raise the recursion limit when imported, so far that deep JSON would end this process."""
    sys.setrecursionlimit(RECURSION)
    skip_unless_asked_for(item)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With REQUIRE=all a run in which anything but an extra was skipped has failed."""
    counts = any(not reason.startswith(PREFIX) for reason in skipped(session.config))
    if EVERYTHING and session.exitstatus == pytest.ExitCode.OK and counts:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was skipped and why."""
    for line in account(skipped(config)):
        terminalreporter.write_line(line)


def skipped(config: pytest.Config) -> dict[str, list[str]]:
    """The tests that were skipped, by reason."""
    found: dict[str, list[str]] = defaultdict(list)
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    for report in reporter.stats.get("skipped", ()) if reporter else ():  # a worker process has none
        found[reason_of(report)].append(report.nodeid)
    return found


def account(by_reason: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each reason, the most frequent first, naming the file where it is met first."""
    if not by_reason:
        return []
    count = sum(map(len, by_reason.values()))
    extras = sum(len(tests) for reason, tests in by_reason.items() if reason.startswith(PREFIX))
    failure = f" - with REQUIRE=all {count - extras} of them are a failure" if EVERYTHING and count > extras else ""
    lines = [f"skipped, {count}{failure}:"]
    ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    for reason, tests in ordered[:REASONS_SHOWN]:
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        lines.append(f"  {len(tests):5}  {' '.join(reason.split())[:100]}  ({files[0]}{more})")
    if len(ordered) > REASONS_SHOWN:
        lines.append(f"         and for {len(ordered) - REASONS_SHOWN} other reasons")
    return lines
