"""Handle one fire, from claim to end: reserve, compose, send, charge. Every step may be the last before a crash.

The result of a step is stored before the next step begins, and every step may be repeated. If
a process dies, its fire is claimed again with the same id, the same reservation and the same
body.
"""

import logging
from typing import NamedTuple

import anyio

from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.protocol import NoCharge, UnknownCall
from toolserver.registry.registry import Operation
from toolserver.webhooks.charges import WebhookCharges
from toolserver.webhooks.delivery import HostBusy, WebhookMessage, WebhookSender, compose_body, compose_challenge
from toolserver.webhooks.egress import TargetRefused
from toolserver.webhooks.fire_operations import AcceptFire, FinishFire, PostponeFire, PrepareFire, RetryFire
from toolserver.webhooks.payloads import PREFIX, PayloadShelf, PayloadSource
from toolserver.webhooks.records import Attempt, ClaimedFire, FireState, WebhookFire, WebhookSubscription
from toolserver.webhooks.schedule import retry_delay
from toolserver.webhooks.secret_box import SecretBoxKey, SecretsUnreadable
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import PauseSubscription
from toolserver.webhooks.unpaid_bodies import Admission, AdmitBody, RefuseBody, WithdrawBody, counts_as_unpaid

log = logging.getLogger(__name__)

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
        operation = self._parts.payloads.operation(subscription.endpoint)
        if operation is None:
            await self._drop(fire, subscription, "endpoint_gone")
        elif fire.state == "accepted":
            with anyio.CancelScope(shield=True):
                await self._conclude(claimed, operation)
        elif (reason := _why_not(fire, subscription, self._now)) is not None:
            await self._drop(fire, subscription, reason)
        elif not fire.price or await self._reserve(claimed, operation):
            ready = await self._prepare(claimed, operation)
            if ready is not None:
                await self._send(ready, operation)

    async def _reserve(self, claimed: ClaimedFire, operation: Operation) -> bool:
        """Reserve the price. Returns False if the fire ended instead."""
        fire, subscription = claimed
        try:
            with anyio.CancelScope(shield=True):  # a ledger releases reservations of callers that are gone
                reservation = await self._parts.charges.reserve(fire, subscription, operation)
        except PaymentRequired as refusal:
            await self._leave_out(claimed, operation, refusal)
            return False
        if reservation.state == "open":
            return True
        if reservation.state == "posted":
            await self._finish(fire, "charged", None)
        else:  # a process died: it gave the fire up and could not record that, or its reservations ended with it
            if fire.attempts:  # such a death may repeat a line of the log, and never leaves one out
                await self._parts.charges.record(fire, subscription, operation.endpoint, "delivery_failed")
            await self._finish(fire, "released", "delivery_failed" if fire.attempts else "late")
        return False

    async def _leave_out(self, claimed: ClaimedFire, operation: Operation, refusal: PaymentRequired) -> None:
        """End a fire for which nothing can be reserved, and pause its subscription if it cannot pay.

        While the ledger is unavailable, a fire that was attempted before is left alone and claimed again later.
        """
        fire, subscription = claimed
        if refusal.code != "billing_unavailable":
            await self._parts.store.apply(PauseSubscription(subscription.id, None, refusal.code, self._now))
            if fire.attempts or fire.interrupted:  # else nothing was ever reserved
                await self._parts.charges.drop(fire, subscription, operation.endpoint, "delivery_failed")
        elif fire.attempts or fire.interrupted:
            return
        else:
            # it is unknown whether credits were reserved
            await self._parts.charges.drop(fire, subscription, operation.endpoint, "delivery_failed")
        await self._finish(fire, "skipped", refusal.code)

    async def _prepare(self, claimed: ClaimedFire, operation: Operation) -> WebhookMessage | None:
        """Return the message with the body of its first attempt; None if the fire ended instead."""
        fire, subscription = claimed
        digest, captured_at = fire.payload, fire.captured_at
        if digest is None:
            since = subscription.last_delivered_at or subscription.created_at
            payload = await self._parts.payloads.compose(subscription.endpoint, subscription.params, since)
            if payload.no_charge is not None:
                await self._release(claimed, operation, payload.no_charge)
                return None
            await self._shelf.put(payload.digest, payload.body)
            digest, captured_at = payload.digest, payload.captured_at
        ready = await self._parts.store.apply(PrepareFire(fire.id, digest, captured_at, self._now))
        if ready is None:
            return None
        body = await self._body(*ready)
        if body is None:
            await self._release(claimed, operation, "delivery_failed")
            return None
        return WebhookMessage(*ready, body)

    async def _body(self, fire: WebhookFire, subscription: WebhookSubscription) -> bytes | None:
        payload = await self._shelf.get(fire.payload or "")
        return None if payload is None else compose_body(fire, subscription, payload)

    async def _send(self, message: WebhookMessage, operation: Operation) -> None:
        """Make one attempt when it is this target's turn, if the subscription is still active."""
        parts, subscription = self._parts, message.subscription
        try:
            async with parts.sender.limits.turn(subscription.url, subscription.host) as waited:
                current = await parts.store.subscription(subscription.id) if waited else subscription
                if current is None or _why_not(message.fire, current, self._now) is not None:
                    await self._drop(message.fire, subscription, "cancelled")
                    return
                admission = await self._admit(message)
                if admission == "refuse":
                    await self._refuse(message, operation)
                    return
                attempt = await self._challenge(message) if admission == "challenge" else None
                if attempt is None:
                    attempt = await self._attempt(message)
        except HostBusy as busy:
            await self._postpone(message.fire, busy.wait_s)
            return
        with anyio.CancelScope(shield=True):  # a sent delivery is recorded and settled even while the service stops
            await self._record(message, attempt, operation)

    async def _admit(self, message: WebhookMessage) -> Admission:
        """Count the body that is about to be sent, and decide whether it may be sent at once."""
        fire, per_hour = message.fire, self._parts.uncharged_per_hour
        if per_hour is None or not counts_as_unpaid(fire):
            return "send"
        return await self._parts.store.apply(AdmitBody(fire.id, message.subscription, per_hour, self._now))

    async def _challenge(self, message: WebhookMessage) -> Attempt | None:
        """Send a challenge. Returns how it failed, which is the end of the attempt, or None if it was accepted."""
        attempt = await self._attempt(compose_challenge(message.fire, message.subscription, self._now))
        return None if attempt.delivered else attempt._replace(challenge=True)

    async def _refuse(self, message: WebhookMessage, operation: Operation) -> None:
        """End a fire of an account with too many unpaid bodies. That is no failure of the subscription's endpoint."""
        log.info("a webhook was not sent: too many bodies are unpaid", extra={"call_id": message.fire.id})
        if message.fire.price:
            await self._parts.charges.release(message.fire, message.subscription, operation, "delivery_failed")
        await self._finish(message.fire, "released", "uncharged_limit")

    async def _record(self, message: WebhookMessage, attempt: Attempt, operation: Operation) -> None:
        """Store how an attempt ended, and settle a delivery."""
        if not attempt.delivered:
            await self._fail(message, attempt, operation)
            return
        self._parts.sender.limits.prove(message.subscription.host)
        accept = AcceptFire(message.fire.id, attempt, self._now)
        accepted = await self._parts.store.apply(accept)
        if accepted is not None:
            await self._conclude(ClaimedFire(accepted, message.subscription), operation)

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
        return await parts.sender.send(url, message.body, headers)

    async def _fail(self, message: WebhookMessage, attempt: Attempt, operation: Operation) -> None:
        """Plan the next attempt within the slot, or give up the fire."""
        fire = message.fire
        if self._parts.uncharged_per_hour is not None and counts_as_unpaid(fire):
            await self._parts.store.apply(RefuseBody(fire.id) if attempt.maybe_read else WithdrawBody(fire.id))
        delay = retry_delay(fire.attempts + 1, attempt)
        due = None if delay is None else self._now + int(delay * 1000)
        if due is not None and due < fire.expires_at and fire.kind != "test":
            await self._parts.store.apply(RetryFire(fire.id, attempt, due))
            return
        if fire.price:
            await self._parts.charges.release(fire, message.subscription, operation, "delivery_failed")
        await self._parts.store.apply(FinishFire(fire.id, "released", "delivery_failed", self._now, attempt))

    async def _conclude(self, claimed: ClaimedFire, operation: Operation) -> None:
        """Charge an accepted fire. While the ledger is unavailable, it stays accepted and is claimed again later."""
        fire, subscription = claimed
        if not fire.price:
            await self._finish(fire, "free", None)
            return
        body = await self._body(fire, subscription)
        message = WebhookMessage(fire, subscription, body or b"")
        try:
            settled = await self._parts.charges.charge(message, operation)
        except PaymentRequired:
            log.warning("a delivered webhook will be charged later", extra={"call_id": fire.id})
            return
        except UnknownCall:
            log.error("the reservation of a delivered webhook is gone", extra={"call_id": fire.id})
            await self._parts.charges.record(fire, subscription, operation.endpoint, "delivery_failed")
            await self._finish(fire, "released", "delivery_failed")
            return
        await self._finish(fire, "charged" if settled.charged else "released", settled.reason)

    async def _release(self, claimed: ClaimedFire, operation: Operation, reason: NoCharge) -> None:
        """End a fire before it is sent, without a charge."""
        if claimed.fire.price:
            await self._parts.charges.release(claimed.fire, claimed.subscription, operation, reason)
        await self._finish(claimed.fire, "released", reason)

    async def _drop(self, fire: WebhookFire, subscription: WebhookSubscription, reason: str) -> None:
        """End a fire that is no longer wanted or is too late."""
        if fire.price:
            uncharged: NoCharge = "cancelled" if reason == "cancelled" else "delivery_failed"
            await self._parts.charges.drop(fire, subscription, f"{PREFIX}{subscription.endpoint}", uncharged)
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
    if subscription.state == "cancelled" and fire.kind != "test":
        return "cancelled"
    if subscription.state == "paused" and fire.kind != "test" and not fire.interrupted:
        return "paused"
    if now >= fire.expires_at + (INTERRUPTED_MS if fire.interrupted else 0):
        return "delivery_failed" if fire.attempts else "late"
    return None
