"""The queue: starts work on what is due, as much at a time as each lane has room for.

The queue itself is in the database. In memory are only the fires that are being worked on, so that endpoints which
hang fill their own lane and no other.
"""

import asyncio
import logging
from collections import Counter

import anyio
from anyio.abc import TaskGroup

from toolserver.clock import Clock
from toolserver.webhooks.fire_operations import ClaimFires, RepairClock
from toolserver.webhooks.fire_worker import FireWorker
from toolserver.webhooks.records import FAST, NEW, SLOW, ClaimedFire, WebhookSubscription
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore
from toolserver.webhooks.subscription_operations import EndFailing, ForgetEnded
from toolserver.webhooks.timer import WebhookTimer

log = logging.getLogger(__name__)

WIDTHS = {FAST: 128, NEW: 128, SLOW: 16}
LINGER_S, LINGERING = 2.0, 512  # work that takes longer leaves its place in the lane to others; so much of it at a time
CLAIM = 32  # fires at a time: those that were claimed first are delivered before the last ones begin
LEASE_MS = 60_000  # longer than the wait for a turn, a lookup and an attempt together
LOOK_S = 1.0  # how often the database is looked at when nothing wakes the queue
CHORES_S = 60.0
_ASIDE = -1  # where work is counted that has left its lane


class WebhookQueue:
    """Runs the timer and the fires. `lease_ms` is how long a claimed fire belongs to this process."""

    def __init__(
        self, timer: WebhookTimer, worker: FireWorker, store: WebhookStore, clock: Clock, *, lease_ms: int = LEASE_MS
    ) -> None:
        self._timer, self._worker, self._store, self._clock = timer, worker, store, clock
        self._lease_ms = lease_ms
        self._busy: Counter[int] = Counter()
        self._woken = anyio.Event()

    @property
    def _now(self) -> int:
        return int(self._clock.time() * 1000)

    def wake(self) -> None:
        """Look at the database now: something was added, or a lane has room again."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled. A failure is logged, and what it concerned is tried again after its lease."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_house)
            while True:
                self._woken = anyio.Event()
                if not await self._look(tasks):
                    with anyio.move_on_after(LOOK_S):
                        await self._woken.wait()

    async def _look(self, tasks: TaskGroup) -> int:
        """Take a batch of what is due, and begin to work on fires; how many subscriptions and fires that were."""
        try:
            due = await self._store.next_due()
            if due is None or due > self._now:
                return 0
            claimed = await self._timer.claim()
            if claimed:
                tasks.start_soon(self._judge, claimed)
            return len(claimed) + await self._start(tasks)
        except Exception:
            log.exception("the queue of webhooks could not be worked on")
            return 0

    async def work_due(self) -> int:
        """Work on everything that is due now, to the end; how many fires. For tests and the command line."""
        done = 0
        while True:
            claimed = await self._timer.claim()
            await self._timer.judge(claimed)
            async with anyio.create_task_group() as tasks:
                started = await self._start(tasks)
            if not claimed and not started:
                return done
            done += started

    async def _start(self, tasks: TaskGroup) -> int:
        """Claim what every lane has room for and begin to work on it; how many fires."""
        rooms = {lane: min(CLAIM, width - self._busy[lane]) for lane, width in WIDTHS.items()}
        free = {lane: room for lane, room in rooms.items() if room > 0}
        if not free:
            return 0
        claimed = await self._store.apply(ClaimFires(self._now, free, self._lease_ms))
        for each in claimed:
            self._busy[each.fire.lane] += 1
            tasks.start_soon(self._work, each.fire.lane, each)
        return len(claimed)

    async def _judge(self, claimed: list[WebhookSubscription]) -> None:
        """Judge conditions beside everything else, for as long as their answers take to be composed."""
        try:
            await self._timer.judge(claimed)
        except Exception:
            log.exception("conditions of webhooks could not be judged")
        finally:
            self.wake()

    async def _work(self, lane: int, claimed: ClaimedFire) -> None:
        place = [lane]
        leaving = asyncio.get_running_loop().call_later(LINGER_S, self._leave_lane, place)
        try:
            await self._worker.work(claimed)
        except Exception:
            log.exception("work on a webhook failed", extra={"call_id": claimed.fire.id})
        finally:
            leaving.cancel()
            self._busy[place[0]] -= 1
            self.wake()

    def _leave_lane(self, place: list[int]) -> None:
        """Let others into a lane of which one place hangs. The slow lane is for those, so nobody leaves it."""
        if place[0] != SLOW and self._busy[_ASIDE] < LINGERING:
            self._busy[place[0]] -= 1
            self._busy[_ASIDE] += 1
            place[0] = _ASIDE
            self.wake()

    async def _keep_house(self) -> None:
        """Every minute: mend what a clock set back misplaced, end what failed for 30 days, forget what is old."""
        while True:
            try:
                await self.keep_house()
            except Exception:
                log.exception("the upkeep of webhooks failed")
            await anyio.sleep(CHORES_S)

    async def keep_house(self) -> None:
        """Do the upkeep once."""
        if moved := await self._store.apply(RepairClock(self._now)):
            log.warning("the clock was set back; webhooks go on with their next slot", extra={"count": moved})
        for id in await self._store.apply(EndFailing(self._now)):
            log.info("a subscription ended after 30 days of failed deliveries", extra={"subscription": id})
        await self._store.apply(ForgetEnded(self._now))
        await self._store.forget_payloads(self._now - PAYLOAD_KEPT_MS)
