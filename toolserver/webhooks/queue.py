"""Run the queue: turn due subscriptions into fires, and work on as many fires at a time as each lane has room for.

A subscription with a condition gets a fire only after the condition was judged on the answer
that all callers get. The queue itself is in the database. Only fires in progress are in
memory. Hanging endpoints fill only their own lane.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from typing import NamedTuple

import anyio
import msgspec
from anyio.abc import TaskGroup

from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.webhooks.charges import WebhookCharges
from toolserver.webhooks.conditions import ConditionState, Transition, decode_condition, evaluate
from toolserver.webhooks.fire_operations import (
    FIRE_CREDITS,
    ClaimFires,
    ClaimSubscriptions,
    RecordEvaluation,
    RepairClock,
    plan_fire,
)
from toolserver.webhooks.fire_worker import FireWorker
from toolserver.webhooks.payloads import PayloadSource, WebhookPayload
from toolserver.webhooks.records import FAST, NEW, SLOW, ClaimedFire, WebhookSubscription
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore
from toolserver.webhooks.subscription_operations import EndFailing, ForgetEnded, PauseSubscription
from toolserver.webhooks.unpaid_bodies import ForgetUnpaid

log = logging.getLogger(__name__)

BATCH = 500  # subscriptions per claim
BALANCES = 32  # balances checked at a time

_decode_state = msgspec.json.Decoder(ConditionState).decode


class Judged(NamedTuple):
    """The result of judging a condition: its stored and its new state, and what to deliver, if anything."""

    subscription: WebhookSubscription
    before: bytes | None
    after: bytes
    transition: Transition | None


class WebhookTimer:
    """Turns due subscriptions into fires."""

    def __init__(self, store: WebhookStore, payloads: PayloadSource, charges: WebhookCharges, clock: Clock) -> None:
        self._store, self._payloads, self._charges, self._clock = store, payloads, charges, clock

    @property
    def _now(self) -> int:
        return int(self._clock.time() * 1000)

    async def claim(self) -> list[WebhookSubscription]:
        """Claim the next batch of due subscriptions. Creates fires, except for those with a condition, which wait for
        `judge`.
        """
        return await self._store.apply(ClaimSubscriptions(self._now, BATCH))

    async def judge(self, claimed: list[WebhookSubscription]) -> None:
        """Judge the conditions of a batch; those on the same query share one answer."""
        conditional = [subscription for subscription in claimed if subscription.condition is not None]
        groups: dict[tuple[str, bytes], list[WebhookSubscription]] = defaultdict(list)
        for subscription in await self._keep_solvent(conditional):
            groups[subscription.endpoint, subscription.params].append(subscription)
        async with anyio.create_task_group() as tasks:
            for question, group in groups.items():
                tasks.start_soon(self._judge_group, question, group)

    async def _judge_group(self, question: tuple[str, bytes], group: list[WebhookSubscription]) -> None:
        endpoint, params = question
        if self._payloads.operation(endpoint) is None:
            return  # an endpoint from an older version; the subscription can be cancelled
        payload = await self._payloads.compose(endpoint, params)
        await self._record(payload, [judged for one in group if (judged := self._judge(one, payload)) is not None])

    async def _keep_solvent(self, subscriptions: list[WebhookSubscription]) -> list[WebhookSubscription]:
        """Return the subscriptions whose balance covers a fire; others are not judged. Checks every account once."""
        by_account: dict[str, list[WebhookSubscription]] = defaultdict(list)
        for subscription in subscriptions:
            by_account[subscription.account].append(subscription)
        solvent: list[WebhookSubscription] = []
        limiter = anyio.CapacityLimiter(BALANCES)

        async def ask(group: list[WebhookSubscription]) -> None:
            async with limiter:
                if await self._can_pay(group):
                    solvent.extend(group)

        async with anyio.create_task_group() as tasks:
            for group in by_account.values():
                tasks.start_soon(ask, group)
        return solvent

    async def _can_pay(self, group: list[WebhookSubscription]) -> bool:
        """Return True if the balance of one account covers a fire. Otherwise pauses its subscriptions."""
        try:
            if await self._charges.can_pay(group[0], FIRE_CREDITS):
                return True
            reason = "insufficient_credits"
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                return False  # this slot is skipped, and no subscription is paused
            reason = refusal.code
        for subscription in group:
            await self._store.apply(PauseSubscription(subscription.id, None, reason, self._now))
        return False

    def _judge(self, subscription: WebhookSubscription, payload: WebhookPayload) -> Judged | None:
        """Judge a condition on an answer; None if nothing changed. Stale or failed answers count as missing data."""
        before = subscription.condition_state
        state = ConditionState() if before is None else _decode_state(before)
        current = self._payloads.decode(payload) if payload.no_charge in (None, "empty_result") else None
        condition = decode_condition(subscription.condition or b"")
        after, transition = evaluate(condition, state, current, self._now / 1000)
        if after is state:
            return None
        return Judged(subscription, before, msgspec.json.encode(after), transition)

    async def _record(self, payload: WebhookPayload, judged: list[Judged]) -> None:
        """Store changes. A report becomes a fire that carries the same answer on which it was judged."""
        if any(one.transition is not None for one in judged):
            body = payload.body or b"null"
            await self._store.save_payload(payload.digest or "null", body, self._now)
        async with anyio.create_task_group() as tasks:  # concurrently, so that they share the store's transactions
            for one in judged:
                tasks.start_soon(self._record_one, payload, one)

    async def _record_one(self, payload: WebhookPayload, judged: Judged) -> None:
        subscription, before, after, transition = judged
        fire = None
        if transition is not None:
            fire = plan_fire(
                subscription,
                self._now,
                kind=transition.state,
                payload=payload.digest or "null",
                captured_at=payload.captured_at,
                condition=msgspec.json.encode(transition),
                state_after=after,
            )
        if not await self._store.apply(RecordEvaluation(subscription.id, before, after, fire)):
            log.info("a subscription changed while its condition was judged", extra={"id": subscription.id})


WIDTHS = {FAST: 128, NEW: 128, SLOW: 16}
LINGER_S, LINGERING = 2.0, 512  # work that takes longer frees its place in the lane; the maximum of such work at a time
CLAIM = 32  # fires per claim: the first ones claimed are delivered before the last ones begin
LEASE_MS = 60_000  # how long a claimed fire belongs to this process: longer than a turn, a lookup and an attempt
LOOK_S = 1.0  # how often the database is checked when nothing wakes the queue
CHORES_S = 60.0
_ASIDE = -1  # counts work that has left its lane


class WebhookQueue:
    """Runs the timer and the fires."""

    def __init__(self, timer: WebhookTimer, worker: FireWorker, store: WebhookStore, clock: Clock) -> None:
        self._timer, self._worker, self._store, self._clock = timer, worker, store, clock
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
        """Complete everything that is due now and return the number of fires. Tests step through time with it."""
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
        claimed = await self._store.apply(ClaimFires(self._now, free, LEASE_MS))
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
