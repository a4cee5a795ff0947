"""Run the timer: turn due subscriptions into fires, at once or after judging the condition on the shared answer."""

import logging
from collections import defaultdict
from typing import NamedTuple

import anyio
import msgspec

from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.webhooks.charges import WebhookCharges
from toolserver.webhooks.condition_state import ConditionState, evaluate
from toolserver.webhooks.conditions import Transition, decode_condition
from toolserver.webhooks.fire_operations import FIRE_CREDITS, ClaimSubscriptions, RecordEvaluation, plan_fire
from toolserver.webhooks.payloads import PayloadSource, WebhookPayload
from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import PauseSubscription

log = logging.getLogger(__name__)

BATCH = 500
ASKED = 32  # balances checked at a time

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
        limiter = anyio.CapacityLimiter(ASKED)

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
