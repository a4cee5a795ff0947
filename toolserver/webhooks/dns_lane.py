"""Look up names in separate threads with a deadline, so that names without an answer do not delay others.

The system's resolver blocks a thread for up to half a minute. In asyncio's own pool, six such names would delay every
other delivery. Lookups therefore have their own pools: one for names that were answered before, one for new names, and
a small one for names that were not answered in time. However many names hang, they only fill the pool of their kind.
"""

import asyncio
import contextlib
import functools
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from toolserver.clock import Clock
from toolserver.webhooks.egress import EgressGuard

R = TypeVar("R")


class DaemonThreads:
    """Runs blocking calls. Threads are started as needed, up to `most`; further calls wait their turn."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._started = self._busy = 0
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self, call: Callable[..., R], *arguments: Any) -> asyncio.Future[R]:
        """Run a call in a thread. Its result or exception arrives in the future."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._busy += 1
        answer.add_done_callback(self._ended)

        def work() -> None:
            result: Any = None
            failure: Exception | None = None
            try:
                result = call(*arguments)
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody is waiting any more
                loop.call_soon_threadsafe(_hand_over, answer, result, failure)

        self._queue.put(work)
        if self._started < min(self._busy, self._most):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return answer

    def _ended(self, _: asyncio.Future[Any]) -> None:
        self._busy -= 1

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def close(self) -> None:
        """End every thread once it has nothing left to do. Hanging threads last until the process ends."""
        for _ in range(self._started):
            self._queue.put(None)


def _hand_over(answer: "asyncio.Future[Any]", result: Any, failure: Exception | None) -> None:
    if answer.done():
        return
    if failure is None:
        answer.set_result(result)
    else:
        answer.set_exception(failure)


DEADLINE_S = 2.0
THREADS, NEW_THREADS, SLOW_THREADS = 32, 128, 4
KEPT_S, KEPT = 30.0, 20_000
SUSPECT_S = 600.0  # how long a name that was not answered in time stays in the slow pool

Lookup = Callable[[str], Sequence[str]]


class NameUnknown(OSError):
    """A name has no address, or no answer arrived in time."""


class _Known(NamedTuple):
    addresses: Sequence[str]
    until: float


def look_up(host: str) -> Sequence[str]:
    """Return the addresses of a name, including IPv6, in the system's order. Blocks. Raises OSError, UnicodeError."""
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


class DnsLane:
    """Resolves names to addresses that the guard allows. Answers are cached for half a minute."""

    def __init__(self, guard: EgressGuard, clock: Clock, *, lookup: Lookup = look_up) -> None:
        self._guard, self._clock, self._lookup = guard, clock, lookup
        self._fast = DaemonThreads(THREADS, "webhook-dns")
        self._new = DaemonThreads(NEW_THREADS, "webhook-dns-new")
        self._slow = DaemonThreads(SLOW_THREADS, "webhook-dns-slow")
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._suspect: OrderedDict[str, float] = OrderedDict()
        self._running: dict[str, asyncio.Future[Sequence[str]]] = {}
        self._begun: set[str] = set()  # names that a thread is looking up; the others in `_running` wait for a thread

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name after checking every one.

        Raises:
            NameUnknown: there is none, or no answer within two seconds.
            TargetRefused: one of them is not allowed.
        """
        cached = self._known.get(host)
        fresh = cached is not None and cached.until > self._clock.monotonic()
        addresses = cached.addresses if cached is not None and fresh else await self._ask(host)
        self._guard.check_all(addresses)
        return addresses

    async def _ask(self, host: str) -> Sequence[str]:
        running = self._running.get(host)
        if running is None:
            running = self._running[host] = self._pool(host).run(self._begin, host)
            running.add_done_callback(functools.partial(self._ended, host))
        try:
            async with asyncio.timeout(DEADLINE_S):
                addresses = await asyncio.shield(running)
        except TimeoutError:
            if host in self._begun:
                self._suspect_name(host)
            raise NameUnknown(f"no answer for {host} in time") from None
        except (OSError, UnicodeError) as error:
            raise NameUnknown(f"{host} has no address") from error
        self._suspect.pop(host, None)
        if not addresses:
            raise NameUnknown(f"{host} has no address")
        return addresses

    def _pool(self, host: str) -> DaemonThreads:
        if self._suspect.get(host, 0) > self._clock.monotonic():
            return self._slow
        return self._fast if host in self._known and host not in self._suspect else self._new

    def _begin(self, host: str) -> Sequence[str]:
        """Look up a name, in a thread."""
        self._begun.add(host)
        return self._lookup(host)

    def _ended(self, host: str, ended: asyncio.Future[Sequence[str]]) -> None:
        """Cache an answer, even a late one. A lookup for which nobody waits any more may fail silently."""
        self._running.pop(host, None)
        self._begun.discard(host)
        if ended.cancelled() or ended.exception() is not None or not ended.result():
            return
        self._known[host] = _Known(ended.result(), self._clock.monotonic() + KEPT_S)
        self._known.move_to_end(host)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)

    def _suspect_name(self, host: str) -> None:
        self._suspect[host] = self._clock.monotonic() + SUSPECT_S
        self._suspect.move_to_end(host)
        if len(self._suspect) > KEPT:
            self._suspect.popitem(last=False)

    def close(self) -> None:
        """End the threads, without waiting for those that still wait for an answer."""
        for pool in (self._fast, self._new, self._slow):
            pool.close()
