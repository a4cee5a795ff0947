"""Measure the CPU seconds of a run by file, and print them where CPU=1 asks for it: they never fail a run.

CPU time is nearly the same under other load, unlike wall time. A fixed piece of work, done in each process before and
after its tests, measures how fast this machine is; seconds are those of a machine that does it in `PIECE_S`.
"""

import gc
import hashlib
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from statistics import fmean
from typing import Any

import pytest

BUDGET_S = 230.0  # what the fast set may take, so that it ends within three minutes on two cores
PIECE_S = 0.03
SHOWN = 25
START, HANDING_OUT = "start and collection", "handing out tests"

SPENT = pytest.StashKey[Counter[str]]()
PIECES = pytest.StashKey[list[float]]()
BUDGETED = pytest.StashKey[bool]()


def cpu_s() -> float:
    """The CPU time of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def hands_out(config: pytest.Config) -> bool:
    """Whether this process runs no test itself: others do, and are waited for. One that forks them collects."""
    return config.pluginmanager.hasplugin("dsession") or config.pluginmanager.hasplugin("forks")


def count_from_here(config: pytest.Config) -> None:
    """Count nothing of what was spent before, in a process that has just been forked."""
    config.stash[SPENT].clear()
    config.stash[PIECES] = [do_piece()]


def do_piece() -> float:
    """Do the piece of work. Return the CPU seconds that it took."""
    began = time.thread_time()
    rows = [{"name": f"row {n}", "value": n / 7, "more": [n] * 5} for n in range(500)]
    for n in range(1, 19):
        text = json.dumps(rows).encode()
        hashlib.sha256(text).digest()
        rows = sorted(json.loads(text), key=lambda row: row["value"] * n % 1)
    return time.thread_time() - began


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[SPENT] = Counter()
    config.stash[PIECES] = [do_piece()]
    config.stash[BUDGETED] = False


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """What collection makes is never garbage: nothing looks for any meanwhile, nor later among what was made."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if not session.config.pluginmanager.hasplugin("dsession"):
            session.config.stash[SPENT][START] += cpu_s()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Count what was spent on a file where another one follows: the clock itself takes up to a millisecond."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            spent = item.config.stash[SPENT]
            spent[item.nodeid.partition("::")[0]] += cpu_s() - spent.total()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands over what it spent."""
    config = session.config
    for _ in range(5):  # as pytest does afterwards, to find what nobody awaited, in a fifth of a second each time
        if not gc.collect():
            break
    gc.freeze()  # pytest then has nothing left to look at
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["spent"] = json.dumps(config.stash[SPENT])
        output["pieces"] = [*config.stash[PIECES], do_piece()]
        return
    if hands_out(config):
        spent = config.stash[SPENT]
        spent[HANDING_OUT] = time.process_time() - (spent[START] if config.pluginmanager.hasplugin("forks") else 0.0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    node.config.stash[SPENT].update(json.loads(output.get("spent", "{}")))
    node.config.stash[PIECES] += output.get("pieces", ())


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if os.environ.get("CPU") == "1":
        for line in account(config.stash[SPENT], config.stash[PIECES], is_fast_set=config.stash[BUDGETED]):
            terminalreporter.write_line(line)


def total_s(spent: Mapping[str, float], pieces: Sequence[float]) -> float:
    """All seconds, as long as they would be on a machine that does the piece in `PIECE_S`."""
    return sum(spent.values()) * PIECE_S / fmean(pieces)


def account(spent: Mapping[str, float], pieces: Sequence[float], *, is_fast_set: bool) -> list[str]:
    """What was spent, of how much where it is the fast set, and on which files."""
    budget = f" of the {BUDGET_S:.0f} that the fast set may take" if is_fast_set else ""
    return [f"{total_s(spent, pieces):.0f} s of CPU{budget}; most of them:", *dearest(spent, pieces, SHOWN)]


def dearest(spent: Mapping[str, float], pieces: Sequence[float], count: int) -> list[str]:
    """Return a line for each of the files that took most."""
    pace = PIECE_S / fmean(pieces)
    most = sorted(spent.items(), key=lambda item: -item[1])[:count]
    return [f"  {seconds * pace:6.1f}  {name}" for name, seconds in most]
