"""Start servers under test on one core, measure their own CPU time, and stop them by their own id."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

CORES = sorted(os.sched_getaffinity(0))
SAME_HASHES = {"PYTHONHASHSEED": "0"}  # the order of names in sets and dictionaries costs a few percent


def allow_descriptors() -> None:
    """Allow this process and its children as many open descriptors as the system permits."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def cpu_us_of(pid: int) -> float:
    """Return the CPU time of a process so far, in microseconds.

    The kernel's clock for it counts nanoseconds; /proc/PID/stat has only hundredths of a second. Its number is what
    clock_getcpuclockid(3) returns.
    """
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e3


def waited_s(pid: int | None = None) -> float:
    """Return how long the main thread of a process, or of this one, could run but had to wait for a core."""
    return int(Path(f"/proc/{pid or os.getpid()}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    pid: int
    port: int
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_us(self) -> float:
        """CPU time used so far by all its threads, user and system, in microseconds."""
        return cpu_us_of(self.pid)

    def cpu_us_with_workers(self) -> float:
        """The same with that of its worker processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()
        return sum(cpu_us_of(int(pid)) for pid in (self.pid, *children))

    def descriptors(self) -> int:
        """The number of open files and connections."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        return int(kib) / 1024


@contextmanager
def started(command: list[str], *, core: int | None = None, **environment: str) -> Iterator[Server]:
    """Start a server that prints one JSON line with its address when it is ready."""
    pin = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **SAME_HASHES, **environment}, preexec_fn=pin
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        url = ready.get("base_url") or ready["world_url"]
        yield Server(process.pid, int(url.rsplit(":", 1)[1]), ready)
    finally:
        process.terminate()
        process.wait(15)


def first_answer_s(command: list[str], path: str, **environment: str) -> float:
    """Return the seconds from the spawn of a server to its first answer, less those that it waited for a core."""
    begun = time.perf_counter()
    with started(command, **environment) as server:
        urlopen(f"http://127.0.0.1:{server.port}{path}").read()
        return time.perf_counter() - begun - waited_s(server.pid)


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
