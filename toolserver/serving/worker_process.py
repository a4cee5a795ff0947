"""Run one worker: a process that serves, and the pipe through which its supervisor controls it.

The first line on its standard input is a JSON object, its orders. Each line after that is a word: `replaced` means
that another process now serves on the same sockets, `stop` that the service ends. The end of the pipe means that the
supervisor is gone, which has the same effect as `stop`. The worker writes one line when it accepts calls.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import Process

from toolserver.errors import ToolserverError

REPLACED, STOP = b"replaced\n", b"stop\n"
LINE_BYTES = 65_536


class WorkerFailed(ToolserverError):
    """A worker did not start to accept calls."""


class WorkerProcess:
    """A process that was started as a worker."""

    def __init__(self, number: int, process: Process) -> None:
        self.number, self._process = number, process
        self.began = anyio.current_time()

    @classmethod
    async def start(
        cls, number: int, words: Sequence[str], orders: Mapping[str, Any], files: Sequence[int]
    ) -> "WorkerProcess":
        """Start a program with these file descriptors open, and send its orders. Raises WorkerFailed."""
        try:
            process = await anyio.open_process(list(words), stderr=None, pass_fds=list(files))
        except OSError as error:
            raise WorkerFailed(f"worker {number} cannot be started: {error.strerror}") from None
        started = cls(number, process)
        try:
            await started._say(json.dumps(orders).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise WorkerFailed(await started._describe_end()) from None
        return started

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True while the process has not ended."""
        return self._process.returncode is None

    async def wait_until_ready(self, within_s: float) -> dict[str, Any]:
        """Return what the worker reports once it accepts calls. Raises WorkerFailed after `within_s` seconds."""
        line = b""
        assert self._process.stdout is not None
        try:
            with anyio.fail_after(within_s):
                while not line.endswith(b"\n") and len(line) < LINE_BYTES:
                    line += await self._process.stdout.receive()
            report = json.loads(line)
        except anyio.EndOfStream:
            raise WorkerFailed(await self._describe_end()) from None
        except TimeoutError:
            raise WorkerFailed(f"worker {self.number} was not ready within {within_s:.0f} seconds") from None
        except ValueError:
            raise WorkerFailed(f"worker {self.number} wrote something other than its ready line to stdout") from None
        if not isinstance(report, dict):
            raise WorkerFailed(f"worker {self.number} wrote a line to standard output that is not an object")
        return report

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit status, which is negative for a signal."""
        return await self._process.wait()

    async def tell(self, word: bytes) -> None:
        """Send one of the words, unless the process has ended."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._say(word)

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.is_running:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """Close the pipes of a process that has ended."""
        await self._process.aclose()

    async def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(line)

    async def _describe_end(self) -> str:
        return f"worker {self.number} {describe_status(await self.wait())} before it was ready; its log says why"


def describe_status(status: int) -> str:
    """Describe how a process ended."""
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
