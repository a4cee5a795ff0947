"""Run the queue: turn due subscriptions into fires, and work on as many fires at a time as each lane has room for.

A subscription with a condition gets a fire only after the condition was judged on the answer
that all callers get. The queue itself is in the database. Only fires in progress are in
memory. Hanging endpoints fill only their own lane.

A fire is handled from claim to end: reserve, compose, send, charge. Every step may be the last
before a crash. Its result is stored before the next step begins, and every step may be
repeated. If a process dies, its fire is claimed again with the same id, the same reservation
and the same body.
"""

import asyncio
import hashlib
import logging
from collections import Counter, defaultdict
from typing import NamedTuple

import anyio
import msgspec
from anyio.abc import TaskGroup

from toolserver.clock import Clock
from toolserver.core import tracing
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.protocol import NoCharge, UnknownCall
from toolserver.registry.registry import Operation
from toolserver.webhooks.conditions import ConditionState, Transition, decode_condition, evaluate
from toolserver.webhooks.delivery import (
    HostBusy,
    PayloadShelf,
    PayloadSource,
    WebhookCharges,
    WebhookMessage,
    WebhookPayload,
    WebhookSender,
    compose_body,
    compose_challenge,
)
from toolserver.webhooks.egress import TargetRefused
from toolserver.webhooks.fire_operations import (
    FIRE_CREDITS,
    AcceptFire,
    ClaimFires,
    ClaimSubscriptions,
    FinishFire,
    PostponeFire,
    PrepareFire,
    RecordEvaluation,
    RepairClock,
    RetryFire,
    plan_fire,
)
from toolserver.webhooks.records import (
    FAST,
    NEW,
    SLOW,
    Attempt,
    ClaimedFire,
    FireState,
    WebhookFire,
    WebhookSubscription,
    path_of,
    retry_delay,
)
from toolserver.webhooks.removed_tools import pause_removed
from toolserver.webhooks.signing import SecretBoxKey, SecretsUnreadable
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore
from toolserver.webhooks.subscription_operations import EndExpired, EndFailing, ForgetEnded, PauseSubscription
from toolserver.webhooks.unpaid_bodies import (
    Admission,
    AdmitBody,
    ForgetUnpaid,
    counts_as_unpaid,
    note_failure,
)
from toolserver.webhooks.verification import verify_receiver

INTERRUPTED_MS = 900_000  # extra time after its slot, for an interrupted attempt


class FireParts(NamedTuple):
    """The parts that a worker uses. Without `uncharged_per_hour`, unpaid bodies are not limited."""

    store: WebhookStore
    charges: WebhookCharges
    payloads: PayloadSource
    sender: WebhookSender
    key: SecretBoxKey
    clock: Clock
    uncharged_per_hour: int | None = 10


class FireWorker:
    """Works on claimed fires. One object handles all of them concurrently."""

    def __init__(self, parts: FireParts) -> None:
        self._parts = parts
        self._shelf = PayloadShelf(parts.store, parts.clock)

    @property
    def _now(self) -> int:
        return int(self._parts.clock.time() * 1000)

    async def work(self, claimed: ClaimedFire) -> None:
        """Take a claimed fire as far as possible now: to its end or to its next attempt."""
        fire, subscription = claimed
        if not self._parts.payloads.delivers(subscription.endpoint):
            await pause_removed(self._parts.store, [subscription], self._now)
            await self._drop(fire, subscription, "endpoint_gone")
        elif fire.state == "accepted":
            with anyio.CancelScope(shield=True):
                await self._conclude(claimed)
        elif (reason := _why_not(fire, subscription, self._now)) is not None:
            await self._drop(fire, subscription, reason)
        elif not fire.price or await self._reserve(claimed):
            ready = await self._prepare(claimed)
            if ready is not None:
                await self._send(ready)

    async def resend(self, delivered: ClaimedFire) -> Attempt | None:
        """Send a delivered fire again, free of charge. Raises HostBusy. None: its payload is no longer kept."""
        body = await self._body(*delivered)
        async with self._parts.sender.limits.turn(delivered.subscription.url, delivered.subscription.host):
            return None if body is None else await self._attempt(WebhookMessage(*delivered, body))

    def _operation_of(self, subscription: WebhookSubscription) -> Operation:
        """Return the premium operation that a subscription is charged for. One to credit alerts is charged for none."""
        operation = self._parts.payloads.operation(subscription.endpoint)
        assert operation is not None, f"{subscription.endpoint} is not for sale"
        return operation

    async def _reserve(self, claimed: ClaimedFire) -> bool:
        """Reserve the price. Returns False if the fire ended instead."""
        fire, subscription = claimed
        try:
            with anyio.CancelScope(shield=True):  # a ledger releases reservations of callers that are gone
                reservation = await self._parts.charges.reserve(fire, subscription, self._operation_of(subscription))
        except PaymentRequired as refusal:
            await self._leave_out(claimed, refusal)
            return False
        if reservation.state == "open":
            return True
        if reservation.state == "posted":
            await self._finish(fire, "charged", None)
        else:  # a process died: it gave the fire up and could not record that, or its reservations ended with it
            if fire.attempts:  # such a death may repeat a line of the log, and never leaves one out
                await self._parts.charges.record(
                    fire, subscription, self._operation_of(subscription).endpoint, "delivery_failed"
                )
            await self._finish(fire, "released", "delivery_failed" if fire.attempts else "late")
        return False

    async def _leave_out(self, claimed: ClaimedFire, refusal: PaymentRequired) -> None:
        """End a fire for which nothing can be reserved, and pause its subscription if it cannot pay.

        While the ledger is unavailable, a fire that was attempted before is left alone and claimed again later.
        """
        fire, subscription = claimed
        if refusal.code != "billing_unavailable":
            await self._parts.store.apply(PauseSubscription(subscription.id, None, refusal.code, self._now))
            if fire.attempts or fire.interrupted:  # else nothing was ever reserved
                await self._parts.charges.drop(
                    fire, subscription, self._operation_of(subscription).endpoint, "delivery_failed"
                )
        elif fire.attempts or fire.interrupted:
            return
        else:  # it is unknown whether credits were reserved
            await self._parts.charges.drop(
                fire, subscription, self._operation_of(subscription).endpoint, "delivery_failed"
            )
        await self._finish(fire, "skipped", refusal.code)

    async def _prepare(self, claimed: ClaimedFire) -> WebhookMessage | None:
        """Return the message with the body of its first attempt; None if the fire ended instead."""
        fire, subscription = claimed
        digest, captured_at = fire.payload, fire.captured_at
        if digest is None:
            since = subscription.last_delivered_at or subscription.created_at
            payload = await self._parts.payloads.compose(subscription.endpoint, subscription.params, since)
            if payload.no_charge is not None:
                await self._release(claimed, payload.no_charge)
                return None
            await self._shelf.put(payload.digest, payload.body)
            digest, captured_at = payload.digest, payload.captured_at
        ready = await self._parts.store.apply(PrepareFire(fire.id, digest, captured_at, self._now))
        if ready is None:
            return None
        body = await self._body(*ready)
        if body is None:
            await self._release(claimed, "delivery_failed")
            return None
        return WebhookMessage(*ready, body)

    async def _body(self, fire: WebhookFire, subscription: WebhookSubscription) -> bytes | None:
        payload = await self._shelf.get(fire.payload or "")
        return None if payload is None else compose_body(fire, subscription, payload)

    async def _send(self, message: WebhookMessage) -> None:
        """Make one attempt when it is this target's turn, if the subscription is still active."""
        parts, subscription = self._parts, message.subscription
        try:
            async with parts.sender.limits.turn(subscription.url, subscription.host) as waited:
                current = await parts.store.subscription(subscription.id) if waited else subscription
                if current is None or _why_not(message.fire, current, self._now) is not None:
                    await self._drop(message.fire, subscription, "cancelled")
                    return
                admission = await self._admit(message)
                attempt = await self._challenge(message) if admission in ("challenge", "only_challenge") else None
                if attempt is None and admission in ("refuse", "only_challenge"):
                    await self._refuse(message)
                    return
                attempt = attempt or await self._attempt(message)
        except HostBusy as busy:
            await self._postpone(message.fire, busy.wait_s)
            return
        with anyio.CancelScope(shield=True):  # a sent delivery is recorded and settled even while the service stops
            await self._record(message, attempt)

    async def _admit(self, message: WebhookMessage) -> Admission:
        """Count the body that is about to be sent, and decide whether it may be sent at once."""
        fire, per_hour = message.fire, self._parts.uncharged_per_hour
        if per_hour is None or not counts_as_unpaid(fire):
            return "send"
        return await self._parts.store.apply(
            AdmitBody(fire.id, message.subscription, per_hour, self._now, is_free=not fire.price)
        )

    async def _challenge(self, message: WebhookMessage) -> Attempt | None:
        """Send a challenge. Returns how it failed, which is the end of the attempt, or None if it was accepted."""
        if message.subscription.event is not None:
            attempt = await verify_receiver(self._parts.sender, self._parts.key, message.subscription, self._now)
        else:
            attempt = await self._attempt(compose_challenge(message.fire, message.subscription, self._now))
        return None if attempt.delivered else attempt._replace(challenge=True)

    async def _refuse(self, message: WebhookMessage) -> None:
        """End a fire of an account with too many unpaid bodies. That is no failure of the subscription's endpoint."""
        log.info("a webhook was not sent: too many bodies are unpaid", extra={"call_id": message.fire.id})
        if message.fire.price:
            await self._parts.charges.release(
                message.fire, message.subscription, self._operation_of(message.subscription), "delivery_failed"
            )
        await self._finish(message.fire, "released", "uncharged_limit")

    async def _record(self, message: WebhookMessage, attempt: Attempt) -> None:
        """Store how an attempt ended, and settle a delivery."""
        if not attempt.delivered:
            await self._fail(message, attempt)
            return
        self._parts.sender.limits.prove(message.subscription.host)
        accept = AcceptFire(message.fire.id, attempt, self._now)
        accepted = await self._parts.store.apply(accept)
        if accepted is not None:
            await self._conclude(ClaimedFire(accepted, message.subscription))

    async def _attempt(self, message: WebhookMessage) -> Attempt:
        parts = self._parts
        try:
            url = parts.sender.lane.guard.check_url(message.subscription.url)
            headers = message.headers(parts.key.unseal(message.subscription.sealed), self._now)
        except TargetRefused:
            return Attempt(None, "target_refused", 0)
        except SecretsUnreadable:
            log.exception("a webhook cannot be signed", extra={"subscription": message.subscription.id})
            return Attempt(None, "internal_error", 0)
        if tracing.tracer is None:
            return await parts.sender.send(url, message.body, headers)
        with tracing.span("delivery", "CLIENT"):
            return await parts.sender.send(url, message.body, headers)

    async def _fail(self, message: WebhookMessage, attempt: Attempt) -> None:
        """Plan the next attempt within the slot, or give up the fire."""
        fire = message.fire
        if self._parts.uncharged_per_hour is not None and counts_as_unpaid(fire):
            await self._parts.store.apply(note_failure(fire, attempt))
        delay = retry_delay(fire.attempts + 1, attempt)
        due = None if delay is None else self._now + int(delay * 1000)
        if due is not None and due < fire.expires_at and fire.kind != "test":
            await self._parts.store.apply(RetryFire(fire.id, attempt, due))
            return
        if fire.price:
            await self._parts.charges.release(
                fire, message.subscription, self._operation_of(message.subscription), "delivery_failed"
            )
        await self._parts.store.apply(FinishFire(fire.id, "released", "delivery_failed", self._now, attempt))

    async def _conclude(self, claimed: ClaimedFire) -> None:
        """Charge an accepted fire. While the ledger is unavailable, it stays accepted and is claimed again later."""
        fire, subscription = claimed
        if not fire.price:
            await self._finish(fire, "free", None)
            return
        body = await self._body(fire, subscription)
        message = WebhookMessage(fire, subscription, body or b"")
        try:
            settled = await self._parts.charges.charge(message, self._operation_of(subscription))
        except PaymentRequired:
            log.warning("a delivered webhook will be charged later", extra={"call_id": fire.id})
            return
        except UnknownCall:
            log.error("the reservation of a delivered webhook is gone", extra={"call_id": fire.id})
            await self._parts.charges.record(
                fire, subscription, self._operation_of(subscription).endpoint, "delivery_failed"
            )
            await self._finish(fire, "released", "delivery_failed")
            return
        await self._finish(fire, "charged" if settled.charged else "released", settled.reason)

    async def _release(self, claimed: ClaimedFire, reason: NoCharge) -> None:
        """End a fire before it is sent, without a charge."""
        if claimed.fire.price:
            await self._parts.charges.release(
                claimed.fire, claimed.subscription, self._operation_of(claimed.subscription), reason
            )
        await self._finish(claimed.fire, "released", reason)

    async def _drop(self, fire: WebhookFire, subscription: WebhookSubscription, reason: str) -> None:
        """End a fire that is no longer wanted or is too late."""
        if fire.price:
            uncharged: NoCharge = "cancelled" if reason == "cancelled" else "delivery_failed"
            await self._parts.charges.drop(fire, subscription, path_of(subscription.endpoint), uncharged)
        await self._finish(fire, "released" if fire.attempts else "skipped", reason)

    async def _postpone(self, fire: WebhookFire, wait_s: float) -> None:
        await self._parts.store.apply(PostponeFire(fire.id, self._now + int(wait_s * 1000)))

    async def _finish(self, fire: WebhookFire, state: FireState, reason: str | None) -> None:
        await self._parts.store.apply(FinishFire(fire.id, state, reason, self._now))


def _why_not(fire: WebhookFire, subscription: WebhookSubscription, now: int) -> str | None:
    """Return why a fire is not attempted any more, or None.

    An interrupted fire, which may have arrived, gets some time after its slot, and is
    finished even if its subscription has been paused since, but not if it was cancelled.
    """
    if (subscription.state == "cancelled" or subscription.is_expired(now)) and fire.kind != "test":
        return "cancelled"
    if subscription.state == "paused" and fire.kind != "test" and not fire.interrupted:
        return "paused"
    if now >= fire.expires_at + (INTERRUPTED_MS if fire.interrupted else 0):
        return "delivery_failed" if fire.attempts else "late"
    return None


log = logging.getLogger(__name__)

BATCH = 500  # subscriptions per claim
BALANCES = 32  # balances checked at a time

_decode_state = msgspec.json.Decoder(ConditionState).decode


class Judged(NamedTuple):
    """The result of judging a condition: its stored and its new state, and what to deliver, if anything.

    `data` are those of an event of MCP Events; otherwise the whole answer is delivered.
    """

    subscription: WebhookSubscription
    before: bytes | None
    after: bytes
    transition: Transition | None
    data: bytes | None = None


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
            await pause_removed(self._store, group, self._now)
            return
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
        if subscription.event is not None:
            judged = self._payloads.events.judge(subscription, state, current, payload.captured_at, self._now)
            if judged is None:
                return None
            return Judged(subscription, before, msgspec.json.encode(judged.after), judged.transition, judged.data)
        condition = decode_condition(subscription.condition or b"")
        after, transition = evaluate(condition, state, current, self._now / 1000)
        if after is state:
            return None
        return Judged(subscription, before, msgspec.json.encode(after), transition)

    async def _record(self, payload: WebhookPayload, judged: list[Judged]) -> None:
        """Store changes. A report becomes a fire that carries the same answer on which it was judged."""
        if any(one.transition is not None and one.data is None for one in judged):
            body = payload.body or b"null"
            await self._store.save_payload(payload.digest or "null", body, self._now)
        for data in {one.data for one in judged if one.data is not None}:
            await self._store.save_payload(hashlib.sha256(data).hexdigest(), data, self._now)
        async with anyio.create_task_group() as tasks:  # concurrently, so that they share the store's transactions
            for one in judged:
                tasks.start_soon(self._record_one, payload, one)

    async def _record_one(self, payload: WebhookPayload, judged: Judged) -> None:
        subscription, before, after, transition, data = judged
        digest = payload.digest if data is None else hashlib.sha256(data).hexdigest()
        fire = None
        if transition is not None:
            fire = plan_fire(
                subscription,
                self._now,
                kind=transition.state,
                payload=digest or "null",
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
        await self._store.apply(EndExpired(self._now))
        await self._store.apply(ForgetEnded(self._now))
        await self._store.apply(ForgetUnpaid(self._now))
        await self._store.forget_payloads(self._now - PAYLOAD_KEPT_MS)
