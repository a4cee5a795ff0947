"""Run tests in processes that are forked from the one that collected them.

To import and collect everything takes a quarter of a minute of CPU. pytest-xdist does so in each of its processes; here
one process does it, forks the others, hands them tests in groups, and reports what they tell it. What runs more than
one process otherwise goes this way: `-n 4` and `-n auto`. pytest-xdist runs the tests as ever on systems other than
Linux, and where `--dist`, `--tx`, `--basetemp` or `--pdb` are given.

A process runs the tests of a group in their order, and tells of each when it is done. So when a process dies, the first
test of its group that was not told of is what it died from; another process is forked for the rest.
"""

import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from xdist.remote import serialize_warning_message
from xdist.workermanage import unserialize_warning_message

from tests.cpu_time import count_from_here
from tests.sets import group_of

PROCESSES = pytest.StashKey[int]()
PLUGIN = "forks"
PATIENCE_S = 10.0  # how long a test may go on that still runs when the run ends early, before it is interrupted


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Take the processes over that pytest-xdist was asked for."""
    option = config.option
    wanted = getattr(option, "numprocesses", None)
    others = option.collectonly or option.basetemp or option.usepdb or getattr(option, "tx", ())
    if not wanted or others or option.dist != "no" or sys.platform != "linux":
        return
    if not isinstance(wanted, int):
        wanted = config.hook.pytest_xdist_auto_num_workers(config=config)
    config.stash[PROCESSES] = min(wanted, option.maxprocesses or wanted)
    option.numprocesses = 0
    config.pluginmanager.register(Forks(), PLUGIN)


@dataclass(eq=False)
class Process:
    """A forked process, as the one that hands out tests sees it."""

    config: pytest.Config  # hooks of pytest-xdist find it here, and what the process hands over in `workeroutput`
    number: int
    connection: Connection
    program: ForkProcess
    group: deque[int] = field(default_factory=deque)  # what it was given and has not told of yet
    workeroutput: dict[str, Any] | None = None


class Forks:
    """The plugin of the process that hands out tests."""

    def __init__(self) -> None:
        self._waiting: deque[list[int]] = deque()
        self._processes: list[Process] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or not session.items:
            return None  # pytest tells of what could not be collected
        numbered = groupby(enumerate(session.items), lambda pair: group_of(pair[1].nodeid))
        self._waiting.extend([n for n, _ in pairs] for _, pairs in numbered)
        try:
            for number in range(min(session.config.stash[PROCESSES], len(self._waiting))):
                self._fork(session, number)
            self._hand_out(session)
        finally:
            self._end_all()
        return True

    def _fork(self, session: pytest.Session, number: int) -> None:
        ours, theirs = multiprocessing.Pipe()
        inherited = [ours, *(process.connection for process in self._processes)]
        program = multiprocessing.get_context("fork").Process(
            target=run_groups, args=(session, number, theirs, inherited), name=f"tests-{number}"
        )
        program.start()
        theirs.close()
        process = Process(session.config, number, ours, program)
        self._processes.append(process)
        self._give(process)

    def _give(self, process: Process) -> None:
        """Hand out the next group; without one, let the process end."""
        process.group.extend(self._waiting.popleft() if self._waiting else ())
        with suppress(BrokenPipeError):  # that it died is told by what it does not send
            process.connection.send(list(process.group))

    def _hand_out(self, session: pytest.Session) -> None:
        while self._processes:
            for connection in wait([process.connection for process in self._processes]):
                process = next(each for each in self._processes if each.connection is connection)
                try:
                    kind, told = process.connection.recv()
                except (EOFError, ConnectionResetError):
                    self._bury(session, process)
                    continue
                self._receive(session, process, kind, told)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        if self._waiting:
            raise RuntimeError(f"{len(self._waiting)} groups of tests were handed to no process")

    def _receive(self, session: pytest.Session, process: Process, kind: str, told: Any) -> None:
        if kind == "test":
            report_test(session, session.items[process.group.popleft()], told)
            if not process.group:
                self._give(process)
        elif kind == "warning":
            told["warning_message"] = unserialize_warning_message(told["warning_message"])
            session.config.hook.pytest_warning_recorded.call_historic(kwargs=told)
        elif kind == "end":
            process.workeroutput = told
        elif kind == "interrupted":
            raise session.Interrupted(told)
        else:
            raise RuntimeError(f"a process that runs tests broke:\n{told}")

    def _bury(self, session: pytest.Session, process: Process) -> None:
        """See to a process that is gone: as it should be, or with a test."""
        self._processes.remove(process)
        process.connection.close()
        process.program.join()
        if process.workeroutput is not None and not process.group:
            session.config.hook.pytest_testnodedown(node=process, error=None)
            return
        died = f"the process that ran it ended with {process.program.exitcode}"
        if not process.group:
            raise RuntimeError(f"a process that ran tests ended with {process.program.exitcode}")
        item = session.items[process.group.popleft()]
        where = item.location[0], item.location[1], item.location[2]
        report = pytest.TestReport(item.nodeid, where, {}, "failed", died, "call")
        item.ihook.pytest_runtest_logreport(report=report)
        if session.shouldfail:
            return
        if process.group:
            self._waiting.appendleft(list(process.group))
        if self._waiting:
            self._fork(session, process.number)

    def _end_all(self) -> None:
        """End what still runs: a process ends itself after its test, and tears down what its tests share."""
        for process in self._processes:
            process.connection.close()
        for how in (None, signal.SIGINT, signal.SIGKILL):
            for process in self._processes:
                if how and process.program.is_alive() and process.program.pid:
                    os.kill(process.program.pid, how)
            for process in self._processes:
                process.program.join(PATIENCE_S)
        self._processes.clear()


def report_test(session: pytest.Session, item: pytest.Item, reports: Iterable[dict[str, Any]]) -> None:
    """Report what a test did in another process, as if it had run here."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for sent in reports:
        report = session.config.hook.pytest_report_from_serializable(config=session.config, data=sent)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class Teller:
    """The plugin of a process that runs tests: what it would print it sends."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self._reports: list[dict[str, Any]] = []
        self._is_registered = False

    def register(self) -> None:
        """Begin to send. A plugin that registers also hears of warnings from before, which others have reported."""
        self._config.pluginmanager.register(self)
        self._is_registered = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        sent = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(sent)

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        if not self._is_registered:
            return
        message = serialize_warning_message(warning_message)
        told = {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
        self._connection.send(("warning", told))

    def end_test(self) -> None:
        self._connection.send(("test", self._reports))
        self._reports = []


def run_groups(session: pytest.Session, number: int, connection: Connection, inherited: list[Connection]) -> None:
    """Run the groups that arrive until none does. This is all that a forked process does."""
    for other in inherited:
        other.close()
    config = session.config
    config.workerinput, config.workeroutput = {"workerid": f"fork{number}"}, {}  # type: ignore[attr-defined]
    become_silent(config)
    count_from_here(config)
    teller = Teller(config, connection)
    teller.register()
    with suppress(BrokenPipeError, ConnectionResetError):  # the run has ended early, and nobody listens
        try:
            with ExitStack() as at_end:  # the last is called first
                at_end.callback(config._ensure_unconfigure)  # fails where a test left something that nobody awaited
                finish = config.hook.pytest_sessionfinish
                at_end.callback(finish, session=session, exitstatus=pytest.ExitCode.OK)
                # A session that ends frees its folder, and other runs clear it away: first ends what tests share.
                at_end.callback(session._setupstate.teardown_exact, None)
                run_until_told(session, connection, teller)
            connection.send(("end", config.workeroutput))  # type: ignore[attr-defined]
        except (KeyboardInterrupt, pytest.exit.Exception) as error:
            connection.send(("interrupted", str(error) or type(error).__name__))
        except Exception:
            connection.send(("broken", traceback.format_exc()))


def become_silent(config: pytest.Config) -> None:
    """Print nothing, and capture into files of our own: those of the process that forked are shared."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ in ("TerminalReporter", "LogXML"):
            config.pluginmanager.unregister(plugin)
    config.pluginmanager.register(StacksOnly(), "terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.read_global_capture()
    capture.stop_global_capturing()
    capture.start_global_capturing()


class StacksOnly:
    """Where pytest-timeout writes what every thread does, when a test takes too long: into the test's own stderr."""

    def __init__(self) -> None:
        self.stats: dict[str, list[pytest.TestReport]] = {}
        self._tw = TerminalWriter(sys.__stderr__)


def run_until_told(session: pytest.Session, connection: Connection, teller: Teller) -> None:
    while group := receive_group(connection):
        # After a group only what the whole session shares is kept: nobody knows yet which group is next.
        for item, following in pairwise([*(session.items[n] for n in group), session]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            teller.end_test()
            is_over = following is not session and connection.poll()  # nothing is sent amid a group
            if is_over or session.shouldfail or session.shouldstop:
                return


def receive_group(connection: Connection) -> list[int]:
    """Return the numbers of tests; none when the run is over."""
    try:
        return connection.recv()  # type: ignore[no-any-return]
    except EOFError:
        return []
