"""Write down what failed in a run, for `tests.second_look`, and which failures a second look never forgives.

The file that OUTCOMES names gets one JSON object at the end of a run: `failures`, each with `id`, `message` and
`never_forgiven`; `left_out`, the number of tests that were skipped though everything was required; `exit`, the status.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

from tests.extras import skips_that_count

FILE = "OUTCOMES"
# What is false once is false, and money that a kill loses once is lost.
NEVER_FORGIVEN = (
    "tests/truth/",
    "tests/hostile/test_allowance_kills.py",
    "tests/hostile/test_disk.py",
    "tests/hostile/test_instances.py",
    "tests/hostile/test_log_kills.py",
    "tests/hostile/test_operator_kills.py",
    "tests/hostile/test_reorgs.py",
    "tests/hostile/test_settlement_kills.py",
    "tests/hostile/test_upgrade_kills.py",
    "tests/money/ledger/test_postgres_history.py",
    "tests/money/ledger/test_simulation.py",
    "tests/live/test_killing.py",
    "tests/live/test_ledger_crash.py",
    "tests/live/test_move.py",
)


def is_never_forgiven(item: pytest.Item) -> bool:
    """Whether one failure counts, whatever happens later: of a property, of truth, of money under kills and faults."""
    if is_hypothesis_test(getattr(item, "obj", None)) or item.get_closest_marker("never_forgiven"):
        return True
    return item.nodeid.startswith(NEVER_FORGIVEN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.never_forgiven = is_never_forgiven(item)  # type: ignore[attr-defined]  # it travels with the report
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get(FILE)
    if not path or hasattr(session.config, "workeroutput"):
        return
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    failed = [report for kind in ("failed", "error") for report in reporter.stats.get(kind, ())]
    failures: dict[str, dict[str, Any]] = {}
    for report in failed:
        failure = failures.setdefault(report.nodeid, {"id": report.nodeid, "message": message_of(report)})
        failure["never_forgiven"] = failure.get("never_forgiven", False) or getattr(report, "never_forgiven", False)
    skips = len(skips_that_count(reporter.stats.get("skipped", ())))
    outcome = {"failures": list(failures.values()), "left_out": skips, "exit": int(session.exitstatus)}
    Path(path).write_text(json.dumps(outcome), encoding="utf-8")


def message_of(report: Any) -> str:
    """Return the first line of what a test failed with."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr or "")
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]
