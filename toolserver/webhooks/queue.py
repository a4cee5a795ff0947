"""Run the queue: start due work, as much at a time as each lane has room for.

The queue itself is in the database. Only fires in progress are in memory. Hanging endpoints fill only their own lane.
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
from toolserver.webhooks.unpaid_bodies import ForgetUnpaid

log = logging.getLogger(__name__)

WIDTHS = {FAST: 128, NEW: 128, SLOW: 16}
LINGER_S, LINGERING = 2.0, 512  # work that takes longer frees its place in the lane; the maximum of such work at a time
CLAIM = 32  # fires per claim: the first ones claimed are delivered before the last ones begin
LEASE_MS = 60_000  # longer than waiting for a turn, a lookup and an attempt together
LOOK_S = 1.0  # how often the database is checked when nothing wakes the queue
CHORES_S = 60.0
_ASIDE = -1  # counts work that has left its lane


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
        """Check the database now, because something was added or a lane has room again."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled. Failures are logged, and the work concerned is retried after its lease."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_house)
            while True:
                self._woken = anyio.Event()
                if not await self._look(tasks):
                    with anyio.move_on_after(LOOK_S):
                        await self._woken.wait()

    async def _look(self, tasks: TaskGroup) -> int:
        """Claim a batch of due work and start on its fires. Returns the number of subscriptions and fires."""
        try:
            due = await self._store.next_due()
            if due is None or due > self._now:
                return 0
            claimed = await self._timer.claim()
            if claimed:
                tasks.start_soon(self._judge, claimed)
            return len(claimed) + await self._start(tasks)
        except Exception:
            log.exception("the webhook queue failed")
            return 0

    async def work_due(self) -> int:
        """Complete everything that is due now and return the number of fires. For tests and the command line."""
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
        """Claim as many fires as every lane has room for, and start on them. Returns their number."""
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
        """Judge conditions in parallel with other work, however long their answers take to compose."""
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
        """Free a hanging place in a lane for others. The slow lane is for hanging work, so work does not leave it."""
        if place[0] != SLOW and self._busy[_ASIDE] < LINGERING:
            self._busy[place[0]] -= 1
            self._busy[_ASIDE] += 1
            place[0] = _ASIDE
            self.wake()

    async def _keep_house(self) -> None:
        """Every minute, fix due times after a clock set back, end what failed for 30 days, delete what is old."""
        while True:
            try:
                await self.keep_house()
            except Exception:
                log.exception("the upkeep of webhooks failed")
            await anyio.sleep(CHORES_S)

    async def keep_house(self) -> None:
        """Do the upkeep once."""
        if moved := await self._store.apply(RepairClock(self._now)):
            log.warning("the clock was set back; webhooks continue with their next slot", extra={"count": moved})
        for id in await self._store.apply(EndFailing(self._now)):
            log.info("a subscription ended after 30 days of failed deliveries", extra={"subscription": id})
        await self._store.apply(ForgetEnded(self._now))
        await self._store.apply(ForgetUnpaid(self._now))
        await self._store.forget_payloads(self._now - PAYLOAD_KEPT_MS)
