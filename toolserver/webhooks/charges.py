"""Charge for fires: reserve credits under the fire's id, and charge them once the receiver has answered 2xx."""

import hashlib
import logging
from typing import Protocol

import msgspec

from toolserver.errors import PaymentRequired
from toolserver.money.ledger.protocol import AccountRef, NoCharge, Reservation, Settlement, UnknownCall, Who
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import Body, Sale, request_text
from toolserver.registry.registry import Operation
from toolserver.webhooks.delivery import WebhookMessage
from toolserver.webhooks.records import WebhookFire, WebhookSubscription

log = logging.getLogger(__name__)

HOLD_S = 26 * 3600.0  # longer than a clock may jump; the service itself settles every hold long before
FOLLOWED_HOLD_S = 3600.0  # the maximum that the owner of a followed ledger allows


class FireLedger(Protocol):
    """The part of `Ledger` that fires need.

    A step whose outcome is unknown is repeated, so its reservation must not be released because of that.
    """

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation: ...
    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement: ...
    async def balance(self, who: Who) -> int: ...


class WebhookCharges:
    """Reserves, charges and releases. `receipts` may be absent in tests."""

    def __init__(self, ledger: FireLedger, receipts: ReceiptService | None, *, hold_s: float = HOLD_S) -> None:
        self._ledger, self._receipts, self._hold_s = ledger, receipts, hold_s

    async def can_pay(self, subscription: WebhookSubscription, price: int) -> bool:
        """Tell if the balance covers a fire. Raises PaymentRequired: invalid_token, expired, billing_unavailable."""
        return await self._ledger.balance(AccountRef(subscription.account)) >= price

    async def reserve(self, fire: WebhookFire, subscription: WebhookSubscription, operation: Operation) -> Reservation:
        """Reserve the price of a fire. The same fire always gets the same reservation. Raises PaymentRequired."""
        return await self._ledger.reserve(
            fire.id, AccountRef(subscription.account), fire.price, endpoint=operation.path, ttl_s=self._hold_s
        )

    async def charge(self, message: WebhookMessage, operation: Operation) -> Settlement:
        """Charge a delivered fire and sign its receipt. Both happen only once, however often this is called.

        Raises:
            PaymentRequired: the ledger is unavailable. The fire stays accepted, and the charge is retried.
            UnknownCall: the ledger no longer knows the reservation.
        """
        settled = await self._ledger.settle(message.fire.id, no_charge=None)
        if self._receipts is not None:
            await self._receipts.sign(_sale(message, operation, settled))
        return settled

    async def release(
        self, fire: WebhookFire, subscription: WebhookSubscription, operation: Operation, reason: NoCharge
    ) -> None:
        """Release the credits of a fire, and count the fire in the public log of uncharged calls."""
        await self._give_back(fire, reason)
        await self.record(fire, subscription, operation.endpoint, reason)

    async def drop(self, fire: WebhookFire, subscription: WebhookSubscription, endpoint: str, reason: NoCharge) -> None:
        """Release any credits that may be reserved for a fire, and if there were any, count it in the public log."""
        if await self._give_back(fire, reason):
            await self.record(fire, subscription, endpoint, reason)

    async def record(
        self, fire: WebhookFire, subscription: WebhookSubscription, endpoint: str, reason: NoCharge
    ) -> None:
        """Count a fire without a charge in the public log of uncharged calls."""
        if self._receipts is not None:
            await self._receipts.record_released(reason, subscription.owner, endpoint, fire.price)

    async def _give_back(self, fire: WebhookFire, reason: str) -> bool:
        """Release any credits that may be reserved for a fire. Returns whether there were any, or a body was sent."""
        try:
            return (await self._ledger.settle(fire.id, no_charge=reason)).charged == 0
        except UnknownCall:
            return fire.attempts > 0  # nothing is reserved
        except PaymentRequired:
            log.warning("a webhook's reservation could not be released and will expire", extra={"call_id": fire.id})
            return fire.attempts > 0


def _sale(message: WebhookMessage, operation: Operation, settled: Settlement) -> Sale:
    """Return a delivered fire as its receipt describes it."""
    subscription, captured_at = message.subscription, message.fire.captured_at
    return Sale(
        message.fire.id,
        subscription.owner,
        operation.endpoint,
        request_text(operation.method, operation.path, msgspec.json.decode(subscription.params)),
        message.fire.price,
        settled.charged,
        settled.remaining,
        operation.method,
        settled.reason,
        body=Body(hashlib.sha256(message.body).hexdigest(), len(message.body)) if message.body else None,
        captured_at=None if captured_at is None else captured_at / 1000,
        sla_s=operation.sla_s,
        kind="webhook",
    )
