"""Keep a number of workers running: start them, restart those that die, renew them one by one, and end them.

Each worker has its place, with sockets that stay open here. Connections that arrive while a
worker restarts wait in its socket for the next process.
"""

import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import Process

from toolserver.errors import ToolserverError

log = logging.getLogger(__name__)

REPLACED, STOP = b"replaced\n", b"stop\n"
MOST_DEATHS = 5
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


StartWorker = Callable[[int], Awaitable[WorkerProcess]]
OnReady = Callable[[list[dict[str, Any]]], None]


@dataclass(frozen=True, slots=True)
class WorkerTimes:
    """How long the life of a worker may take, in seconds.

    It has `start_s` to accept calls. A worker that ends within `soon_s` after its start has
    not recovered from what ended the one before it; the next one waits `first_wait_s`, then
    twice as long each time, up to `longest_wait_s`. Workers have `stop_s` to end (with the
    rest, a stop takes less than 15 seconds), and a replaced one `leave_s`, as it waits for
    its clients and then for requests in progress.
    """

    start_s: float = 60.0
    stop_s: float = 14.0
    leave_s: float = 20.0
    soon_s: float = 10.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0

    def allow_drain(self, drain_s: float) -> "WorkerTimes":
        """Return these times, with enough to stop for workers that drain for so many seconds."""
        return replace(self, stop_s=max(self.stop_s, drain_s + AFTER_DRAIN_S))

    def wait_before(self, deaths: int) -> float:
        """Return the seconds to wait before restarting a worker that died early this many times in a row."""
        return min(self.longest_wait_s, self.first_wait_s * math.pow(2, deaths - 1)) if deaths else 0.0


WORKER_TIMES = WorkerTimes()
AFTER_DRAIN_S = 9.0  # for a worker to end once it has drained


@dataclass
class WorkerPlace:
    """The place of one worker number. Code that starts a process for it must hold `changing`."""

    number: int
    process: WorkerProcess | None = None
    deaths: int = 0  # in a row, each soon after its start
    changing: anyio.Lock = field(default_factory=anyio.Lock)


class Supervisor:
    """Runs workers. `start` starts the process of a number, which then reports when it is ready."""

    def __init__(self, count: int, start: StartWorker, times: WorkerTimes = WORKER_TIMES) -> None:
        self._places = [WorkerPlace(number) for number in range(count)]
        self._start, self._times = start, times
        self._processes: list[WorkerProcess] = []

    async def run(self, stop: anyio.Event, on_ready: OnReady) -> None:
        """Run the workers until the event is set. `on_ready` receives what each worker reported, once all are ready.

        Raises:
            WorkerFailed: a worker fails to start at first, or ends repeatedly soon after its start. The others have
                been stopped in order.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when, stop, tasks.cancel_scope)
                on_ready(await self._start_all())
                for place in self._places:
                    tasks.start_soon(self._keep, place)
        except BaseExceptionGroup as group:
            failed, others = group.split(WorkerFailed)
            if failed is None or others is not None:
                raise
            raise _first_of(failed) from None
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_all()

    async def renew(self) -> None:
        """Replace the workers one after another, each by a new one that is ready before the old one stops.

        If a new worker does not start, the old one and the remaining ones continue.
        """
        for place in self._places:
            async with place.changing:
                old = place.process
                try:
                    await self._fill(place)
                except WorkerFailed as error:
                    log.error("the workers were not renewed: a new worker does not start", extra={"reason": str(error)})
                    return
            if old is not None:
                await self._let_leave(old)
        log.info("all workers were renewed", extra={"workers": len(self._places)})

    def kill_all(self) -> None:
        """End every process at once."""
        for process in self._processes:
            process.kill()

    async def _start_all(self) -> list[dict[str, Any]]:
        """Start the first worker alone, which migrates the database and makes keys, then the others."""
        said: dict[int, dict[str, Any]] = {}

        async def begin(place: WorkerPlace) -> None:
            try:
                said[place.number] = await self._fill(place)
            except WorkerFailed as error:
                raise WorkerFailed(f"the service could not start: {error}") from None

        first, *others = self._places
        await begin(first)
        async with anyio.create_task_group() as tasks:
            for place in others:
                tasks.start_soon(begin, place)
        return [said[place.number] for place in self._places]

    async def _fill(self, place: WorkerPlace) -> dict[str, Any]:
        """Start a process for a place, which it takes once it is ready. Raises WorkerFailed."""
        process = await self._start(place.number)
        self._processes = [each for each in self._processes if each.is_running] + [process]
        try:
            said = await process.wait_until_ready(self._times.start_s)
        except WorkerFailed:
            process.kill()
            raise
        place.process = process
        return said

    async def _keep(self, place: WorkerPlace) -> None:
        """Restart the worker of a place whenever it ends."""
        while True:
            process = place.process
            assert process is not None
            status = await process.wait()
            async with place.changing:
                if place.process is process:  # and was not replaced
                    log.error("a worker has ended", extra={"worker": place.number, "end": describe_status(status)})
                    await process.close()
                    await self._start_again(place, anyio.current_time() - process.began)

    async def _start_again(self, place: WorkerPlace, lived_s: float) -> None:
        """Start a process to replace one that lived this many seconds. Raises WorkerFailed after many early deaths."""
        place.deaths = place.deaths + 1 if lived_s < self._times.soon_s else 0
        while True:
            if place.deaths > MOST_DEATHS:
                raise WorkerFailed(
                    f"worker {place.number} ended {place.deaths} times in a row soon after its start, so the service"
                    " ends; its log says why"
                )
            await anyio.sleep(self._times.wait_before(place.deaths))
            try:
                await self._fill(place)
                return
            except WorkerFailed as error:
                place.deaths += 1
                log.error("a worker does not start", extra={"worker": place.number, "reason": str(error)})

    async def _let_leave(self, process: WorkerProcess) -> None:
        """Tell a worker that it is replaced and wait until it has ended. Kills a worker that takes too long."""
        await process.tell(REPLACED)
        with anyio.move_on_after(self._times.leave_s):
            await process.wait()
        process.kill()
        await process.wait()
        await process.close()

    async def _end_all(self) -> None:
        """Ask every process to end, and kill those that take too long."""
        for process in self._processes:
            await process.tell(STOP)
        with anyio.move_on_after(self._times.stop_s):
            for process in self._processes:
                await process.wait()
        for process in self._processes:
            if process.is_running:
                log.error("a worker did not end in time and is killed", extra={"worker": process.number})
                process.kill()
            await process.wait()
            await process.close()


async def _cancel_when(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


def _first_of(group: BaseExceptionGroup[WorkerFailed]) -> WorkerFailed:
    """Return the first plain error inside a group."""
    inner = group.exceptions[0]
    return _first_of(inner) if isinstance(inner, BaseExceptionGroup) else inner
