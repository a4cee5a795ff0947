"""Share capacity fairly between receivers: one delivery at a time per endpoint, four per host, a rate for new hosts."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolserver.clock import Clock
from toolserver.errors import ToolserverError

PER_ENDPOINT, PER_HOST = 1, 4
WAIT_S = 15.0  # maximum wait for a turn at a busy host; far less than the lease of a claimed fire
WAITING = 16  # maximum deliveries waiting for one host
UNPROVEN_PER_MINUTE = 60
PROVEN = 50_000


class HostBusy(ToolserverError):
    """No turn is free at this host now; try again after `wait_s` seconds."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("the target host is busy")
        self.wait_s = wait_s


@dataclass(slots=True)
class _Turns:
    gate: asyncio.Semaphore
    users: int = 0


class HostLimits:
    """The turns of all targets, across all tokens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: dict[Hashable, _Turns] = {}
        self._proven: OrderedDict[str, None] = OrderedDict()
        self._sent: dict[str, deque[float]] = {}

    def prove(self, host: str) -> None:
        """Note that a receiver at this host has answered 2xx, so it is not an uninvolved third party."""
        self._proven[host] = None
        self._proven.move_to_end(host)
        self._sent.pop(host, None)
        if len(self._proven) > PROVEN:
            self._proven.popitem(last=False)

    @asynccontextmanager
    async def turn(self, url: str, host: str) -> AsyncIterator[bool]:
        """Hold a turn to send to a URL; yields whether it had to wait. Raises HostBusy if none is free within 15 s."""
        async with self._gate(("url", url), PER_ENDPOINT) as behind, self._gate(("host", host), PER_HOST) as crowded:
            self._count_unproven(host)
            yield behind or crowded

    @asynccontextmanager
    async def _gate(self, key: Hashable, most: int) -> AsyncIterator[bool]:
        turns = self._turns.setdefault(key, _Turns(asyncio.Semaphore(most)))
        if turns.users >= most + WAITING:
            raise HostBusy(WAIT_S)
        turns.users += 1
        waits = turns.gate.locked()
        try:
            try:
                async with asyncio.timeout(WAIT_S):
                    await turns.gate.acquire()
            except TimeoutError:
                raise HostBusy(WAIT_S) from None
            try:
                yield waits
            finally:
                turns.gate.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[key]

    def _count_unproven(self, host: str) -> None:
        """Count a delivery to a host that has never answered 2xx. Raises HostBusy above 60 a minute."""
        if host in self._proven:
            return
        now = self._clock.monotonic()
        sent = self._sent.setdefault(host, deque())
        while sent and sent[0] <= now - 60:
            sent.popleft()
        if len(sent) >= UNPROVEN_PER_MINUTE:
            raise HostBusy(sent[0] + 60 - now)
        sent.append(now)
        if len(self._sent) > PROVEN:
            del self._sent[next(iter(self._sent))]
