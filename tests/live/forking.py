"""Start our own programs from a process that has imported the product: 0.5 s of CPU less for each of hundreds.

One such process belongs to each test process, and is started at the first use. Where processes cannot be forked, and in
tests about starting, ending or memory, a program is started plainly. A forked program has its own environment, working
directory and output; it differs from a plain one in what the interpreter does before and after the program.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

from tests.live import preloading

ROOT = Path(__file__).resolve().parents[2]
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()

_LOCK = threading.Lock()  # an exit status can be read once, and starting a process reads those of others


class ForkedProcess:
    """A program as `subprocess.Popen` shows one: what tests use of it."""

    def __init__(
        self, module: str, words: Sequence[str], *, env: Mapping[str, str], cwd: Path, stdout: int, stderr: int
    ) -> None:
        self.args = [sys.executable, "-m", module, *words]
        self.stdin = None
        self.stdout, output = _pipe(stdout)
        self.stderr, errors = _pipe(stderr)
        streams = Connection(output, readable=False), Connection(errors, readable=False)
        named = {"module": module, "words": list(words), "env": dict(env), "cwd": str(cwd)}
        try:
            with _LOCK:
                self._process = _context().Process(target=run_program, args=streams, kwargs=named, daemon=True)
                self._process.start()
        finally:
            for stream in streams:
                stream.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        with _LOCK:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status. Raises TimeoutExpired when the program still runs after `timeout` seconds."""
        if self.poll() is None and not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        status = self.poll()
        assert status is not None
        return status

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Return all output that was not read yet, after the end of the program, and close its pipes."""
        until = None if timeout is None else time.monotonic() + timeout
        found: dict[int, bytes] = {}
        readers = [
            threading.Thread(target=lambda n=n, stream=stream: found.update({n: stream.read()}), daemon=True)
            for n, stream in enumerate((self.stdout, self.stderr))
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if until is None else max(0.0, until - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        for stream in filter(None, (self.stdout, self.stderr)):
            stream.close()
        self.wait(None if until is None else max(0.0, until - time.monotonic()))
        return found.get(0, b""), found.get(1, b"")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        with _LOCK:
            self._process.terminate()

    def kill(self) -> None:
        with _LOCK:
            self._process.kill()


Process = subprocess.Popen[bytes] | ForkedProcess


def start_program(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    forked: bool = True,
) -> Process:
    """Start `python -m MODULE WORD …`, by a fork where that is possible.

    `stdout` and `stderr` are files, PIPE, or None for those of the tests.
    """
    python, flag, module, *words = command
    if not (forked and CAN_FORK):
        return subprocess.Popen(list(command), env=dict(env), cwd=cwd, stdout=stdout, stderr=stderr)
    assert (python, flag) == (sys.executable, "-m"), command
    return ForkedProcess(module, words, env=env, cwd=cwd, stdout=_number(stdout, 1), stderr=_number(stderr, 2))


def run_program(
    output: Connection, errors: Connection, *, module: str, words: list[str], env: dict[str, str], cwd: str
) -> None:
    """Become a program: this is what runs in a new process."""
    preloading.check_that_all_is_imported()
    for stream, number in ((output, 1), (errors, 2)):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8", errors=e, closefd=False) for n, e in _ERRORS.items())
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [folder for folder in env.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", str(ROOT))]
    time.tzset()
    os.chdir(cwd)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


_ERRORS = {1: "strict", 2: "backslashreplace"}


def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.live.preloaded"])
    return context


def _pipe(stream: int) -> tuple[IO[bytes] | None, int]:
    """Return the end that is read here, if there is one, and the one that the program writes to."""
    if stream != subprocess.PIPE:
        return None, os.dup(stream)
    ours, theirs = os.pipe()
    return os.fdopen(ours, "rb", buffering=0), theirs


def _number(stream: int | IO[bytes] | None, inherited: int) -> int:
    if stream is None:
        return inherited
    return stream if isinstance(stream, int) else stream.fileno()
