"""Charged answers that are on their way to their callers: the journal forgets them when they have arrived."""

import logging
import math
from collections.abc import Sequence

import anyio

from toolserver.clock import Clock
from toolserver.ledger.client.journal import Journal
from toolserver.storage.errors import StorageFailed

log = logging.getLogger(__name__)

LINGER_S = 1.0  # an answer that was sent counts as delivered after this long


class Deliveries:
    """The calls that were charged, with the time at which each counts as delivered."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self.until: dict[str, float] = {}  # by call_id, on the monotonic clock
        self._news = anyio.Event()

    def begin(self, call_id: str) -> None:
        """The call is charged; its answer will be sent."""
        self._set(call_id, math.inf)

    def finish(self, call_id: str) -> None:
        """The answer was sent. If the process lives on for a moment, it has arrived."""
        if call_id in self.until:
            self._set(call_id, LINGER_S)

    def cancel(self, call_id: str) -> None:
        """The call is released instead."""
        self.until.pop(call_id, None)

    async def run(self) -> None:
        """Remove delivered calls from the journal, until cancelled."""
        while True:
            await self._news.wait()
            await anyio.sleep(LINGER_S)
            await self.forget_delivered()
            if not self.until:
                self._news = anyio.Event()

    async def forget_delivered(self) -> None:
        """Remove from the journal the calls that count as delivered now."""
        now = self._clock.monotonic()
        await self._forget([call_id for call_id, until in self.until.items() if until <= now])

    async def finish_all(self) -> None:
        """Remove all of them, at an orderly end: every charged answer that is not to be released was sent."""
        await self._forget(list(self.until))

    def _set(self, call_id: str, for_s: float) -> None:
        self.until[call_id] = self._clock.monotonic() + for_s
        self._news.set()

    async def _forget(self, call_ids: Sequence[str]) -> None:
        if not call_ids:
            return
        try:
            await self._journal.delivered(call_ids)
        except StorageFailed:
            log.exception("delivered calls could not be removed from the journal")
            return
        for call_id in call_ids:
            self.until.pop(call_id, None)
