"""Choose the tests of a run, their order and the number of processes, and report the tests left out.

The fast set is every test but those marked `live` or `slow`; hypothesis tries few examples. With REQUIRE=all a run
takes every test, with many examples. A run whose command line has files, `-m` or `-k` takes the tests that they select.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.cpu_time import BUDGETED
from tests.size import EVERYTHING, LONG

LEFT_OUT = pytest.StashKey[dict[str, int]]()
REASONS_SHOWN = 8
LIVE = "starts a real server, a real client or another program"

# Files of one large test each, or of slow ones: they begin first, so that no process ends long after the others.
FIRST = (
    "tests/truth/test_truth.py",
    "tests/tools/test_day.py",
    "tests/live/test_schemathesis.py",
    "tests/live/test_fault_matrix.py",
    "tests/live/test_killing.py",
    "tests/live/test_ledger_crash.py",
    "tests/hostile/test_clock.py",
    "tests/hostile/test_disk.py",
    "tests/hostile/test_arguments.py",
    "tests/tools/test_fault_matrix.py",
    "tests/money/ledger/test_simulation.py",
    "tests/tools/sources/test_damaged_rows.py",
    "tests/live/browser/test_every_page.py",
    "tests/live/test_recording.py",
    "tests/hostile/test_allowance_kills.py",
    "tests/hostile/test_operator_kills.py",
    "tests/live/test_tokens.py",
    "tests/live/test_shared_database.py",
    "tests/live/test_shared_payments.py",
    "tests/live/test_shared_limits.py",
    "tests/live/test_shared_answers.py",
    "tests/money/ledger/test_operations.py",
)
# Files whose tests share nothing that is expensive to make: each test may run in another process. The matrices of
# faults and of truth are not here: a process makes once what the world shows and what is said without a fault.
SPLIT = frozenset(
    {
        "tests/hostile/test_disk.py",
        "tests/live/test_killing.py",
        "tests/money/ledger/test_simulation.py",
        "tests/tools/sources/test_damaged_rows.py",
    }
)

# Folders whose files share what is expensive to make: here the parsed sources of the whole product.
TOGETHER = ("tests/architecture/",)

PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # both judge by the wall clock
settings.register_profile("dev", max_examples=20, derandomize=True, database=None, **PATIENT)
settings.register_profile("ci", max_examples=30, print_blob=True, **PATIENT)  # others in each run
settings.register_profile("long", max_examples=1000, print_blob=True, **PATIENT)
settings.load_profile("long" if LONG else "ci" if EVERYTHING else "dev")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = {}
    config.stash[BUDGETED] = takes_the_fast_set(config) and not config.option.collectonly


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the fast set, unless it was asked for; put the longest first."""
    if takes_the_fast_set(config):
        reasons = {item: reason_to_leave_out(item) for item in items}
        config.stash[LEFT_OUT] = dict(Counter(reason for reason in reasons.values() if reason))
        config.hook.pytest_deselected(items=[item for item, reason in reasons.items() if reason])
        items[:] = [item for item, reason in reasons.items() if not reason]
    rank = {file: n for n, file in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))


def takes_the_fast_set(config: pytest.Config) -> bool:
    """True where nothing on the command line chooses tests and REQUIRE=all is not set."""
    sent: Mapping[str, Any] = getattr(config, "workerinput", {})
    if "fast_set" in sent:
        return bool(sent["fast_set"])
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return not (EVERYTHING or named or config.option.markexpr or config.option.keyword)


def reason_to_leave_out(item: pytest.Item) -> str | None:
    """Why the fast set does not have a test, or None where it has it."""
    if item.get_closest_marker("live"):
        return f"live: {LIVE}"
    slow = item.get_closest_marker("slow")
    return f"slow: {slow.args[0]}" if slow else None


def group_of(nodeid: str) -> str:
    """Name what runs in one process: a whole file, but `SPLIT` ones by the test and `TOGETHER` by the folder."""
    file = nodeid.partition("::")[0]
    if file in SPLIT:
        return nodeid
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


class LongestFirst(LoadScopeScheduling):
    """Hands out the groups in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    return LongestFirst(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More processes than cores, because cores may be shared, and tests of real servers wait for half of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count_workers(cores, everything=EVERYTHING)


def count_workers(cores: int, *, everything: bool) -> int:
    """How many processes run tests on so many cores: more where those that wait for programs run too.

    Each process makes what its tests share, and where none can be forked it also imports and collects everything.
    """
    return 5 * cores // 2 if everything else cores + cores // 2


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker is started with other arguments than the run: it is told which set to take."""
    node.workerinput["fast_set"] = takes_the_fast_set(node.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What a worker left out travels to the process that prints the summary."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = json.dumps(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    node.config.stash[LEFT_OUT] |= json.loads(getattr(node, "workeroutput", {}).get("left_out", "{}"))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in lines_on_left_out(config.stash[LEFT_OUT].items()):
        terminalreporter.write_line(line)


def lines_on_left_out(reasons: Iterable[tuple[str, int]]) -> list[str]:
    """A line for each reason, the most frequent first."""
    ordered = sorted(reasons, key=lambda item: (-item[1], item[0]))
    if not ordered:
        return []
    head = f"not in the fast set, {sum(n for _, n in ordered)} - REQUIRE=all runs them, and so does naming their file:"
    lines = [head, *(f"  {n:5}  {reason}" for reason, n in ordered[:REASONS_SHOWN])]
    others = ordered[REASONS_SHOWN:]
    return lines + ([f"  {sum(n for _, n in others):5}  for {len(others)} other reasons"] if others else [])
