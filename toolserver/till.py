"""Selling one answer: credits are set aside, the answer is made, it is settled what is owed, and a receipt is signed.

Whatever goes wrong moves towards "not charged": a hold is settled even when the caller hangs up, a caller who is gone
after being charged gets the credits back, and so does one for whom no receipt could be made.
"""

import logging
from collections.abc import Awaitable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
import msgspec
from pydantic import BaseModel

from toolserver.access import Caller, token_hash
from toolserver.answers import Answers, SchemaFailure, key_of
from toolserver.billing.ledger import Ledger, NoCharge, Settlement
from toolserver.billing.receipts import Body, Receipts, Sale, request_text
from toolserver.errors import CallRejected, InternalError, PaymentRequired, UpstreamUnavailable
from toolserver.metrics import Metrics
from toolserver.registry import Operation
from toolserver.rendering import Rendered

if TYPE_CHECKING:
    from toolserver.billing.counter import Counter

log = logging.getLogger(__name__)

R = TypeVar("R")

HOLD_S = 300.0
SETTLE_S = 5.0
OUR_FAULT = "Something went wrong on our side; the request id helps us find it."
_FACTS = ("generated_at", "expires_at", "oldest_at", "stale", "nothing", "no_charge")
_WITH_CREDITS = ("mcp", "stdio")  # doors whose text says what is left: there, the text is what a receipt is about


class Order(NamedTuple):
    """One paid call."""

    call_id: str
    operation: Operation
    arguments: BaseModel
    given: Mapping[str, Any]
    caller: Caller
    token: str


class Sold(NamedTuple):
    """What a paid call came to. `remaining` is None when the ledger did not say."""

    rendered: Rendered
    charged: int
    remaining: int | None
    reason: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None


class Till:
    """Sells answers. `receipts` may be absent in tests."""

    def __init__(
        self,
        answers: Answers,
        ledger: Ledger,
        metrics: Metrics,
        receipts: Receipts | None,
        counter: "Counter | None" = None,
    ) -> None:
        self._answers, self._ledger, self._metrics = answers, ledger, metrics
        self._receipts, self._counter = receipts, counter

    async def sell(self, order: Order) -> Sold:
        """Make a paid call. An order whose call_id was used before is not charged again.

        Raises:
            CallRejected: the caller gets no payload, and nothing was charged. If there is a receipt of that, it is in
                the headers.
        """
        operation = order.operation
        rendered = self.owed_at_hand(operation, key_of(operation, order.arguments), self._answers.clock.time())
        if rendered is not None:
            return await self.sell_at_hand(order, rendered)
        hold = self._ledger.reserve(
            order.call_id, order.token, operation.credits, endpoint=operation.path, ttl_s=HOLD_S
        )
        await self._reached(order, hold)
        rendered = await self._made(order)
        reason = no_charge(rendered)
        answer = await self._settled(order, reason)
        if rendered.nothing:
            told = "No source of this payload answered. Nothing was charged."
            raise await self._refused(order, UpstreamUnavailable(told, headers={"Retry-After": "15"}), "5xx", answer)
        return await self._sold(order, rendered, answer, reason)

    def owed_at_hand(self, operation: Operation, key: Hashable, now: float) -> Rendered | None:
        """An answer that needs no waiting and is to be paid for: it is charged in one step."""
        rendered = self._answers.hit(key, now)
        if rendered is None or no_charge(rendered) or self._answers.due(rendered, now):
            return None
        return rendered

    async def sell_at_hand(self, order: Order, rendered: Rendered) -> Sold:
        """Charge for an answer that is there: with its receipt in one go, where both are in one file."""
        operation, price = order.operation, order.operation.credits
        if self._counter is None:
            charge = self._ledger.charge(order.call_id, order.token, price, endpoint=operation.path)
            settled = await self._reached(order, charge)
            self._metrics.settled(operation.name, price, None)
            return await self._sold(order, rendered, settled)

        def sale(settled: Settlement) -> Sale:
            body = _body(order, rendered, settled)
            return _sale(order, settled, settled.reason, body=body, captured_at=rendered.oldest_at)

        sold = self._counter.sell(order.call_id, order.token, price, endpoint=operation.path, sale=sale)
        try:
            settled, receipt = await self._reached(order, sold)
        except CallRejected:
            raise
        except Exception:
            log.exception("no receipt could be made, so the call is not charged", extra=self._who(order))
            raise InternalError(OUR_FAULT) from None
        self._metrics.settled(operation.name, price, None)
        return Sold(rendered, settled.charged, settled.remaining, settled.reason, *receipt)

    async def _reached(self, order: Order, asked: Awaitable[R]) -> R:
        """The ledger's answer. That it cannot be reached is something the public may know."""
        try:
            return await asked
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                await self._unheard(order, "circuit_breaker")
            raise

    async def _made(self, order: Order) -> Rendered:
        """The answer. If there is none, the hold is settled before this raises."""
        try:
            return await self._answers.get(order.operation, order.arguments, key_of(order.operation, order.arguments))
        except anyio.get_cancelled_exc_class():
            await self._gone(order)
            raise
        except CallRejected:  # the tool itself refuses: neither sold nor failed
            await self._settled(order, "rejected")
            raise
        except SchemaFailure:
            log.exception("a tool broke its schema", extra=self._who(order))
            raise await self._failed(order, "schema_failure") from None
        except Exception:
            log.exception("a paid call failed", extra=self._who(order))
            raise await self._failed(order, "5xx") from None

    async def _failed(self, order: Order, reason: NoCharge) -> CallRejected:
        return await self._refused(order, InternalError(OUR_FAULT), reason, await self._settled(order, reason))

    async def _settled(self, order: Order, reason: str | None) -> Settlement | None:
        """How the ledger settled it; None when it did not say. It may have been told to release it by then, by us."""
        settled = None
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                settled = await self._ledger.settle(order.call_id, no_charge=reason)
                self._metrics.settled(order.operation.name, order.operation.credits, settled.reason)
        except PaymentRequired:
            log.warning("the ledger did not say how it settled a call", extra=self._who(order))
        return settled

    async def _sold(
        self, order: Order, rendered: Rendered, settled: Settlement | None, reason: str | None = None
    ) -> Sold:
        """The answer with its receipt, unless the caller has gone meanwhile."""
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            await self._gone(order)
            raise
        remaining = settled.remaining if settled else None
        charged = settled.charged if settled else 0
        reason = reason or (settled.reason if settled else None)
        if self._receipts is None:
            self._ledger.delivered(order.call_id)
            return Sold(rendered, charged, remaining, reason)
        body = _body(order, rendered, settled)
        try:
            receipt_id, receipt = await self._signed(order, settled, reason, body=body, captured_at=rendered.oldest_at)
        except Exception:
            log.exception("no receipt could be made, so the call is not charged", extra=self._who(order))
            await self._settled(order, "5xx")
            raise InternalError(OUR_FAULT) from None
        self._ledger.delivered(order.call_id)
        return Sold(rendered, charged, remaining, reason, receipt_id, receipt)

    async def _refused(
        self, order: Order, rejected: CallRejected, reason: NoCharge, settled: Settlement | None
    ) -> CallRejected:
        """The refusal with a receipt that says that nothing was charged."""
        if settled is not None:
            rejected.headers["X-Credits-Remaining"] = str(settled.remaining)
        if self._receipts is not None:
            try:
                names = ("X-Service-Receipt-Id", "X-Service-Receipt")
                signed = await self._signed(order, settled, reason, status=rejected.status)
                rejected.headers |= dict(zip(names, signed, strict=True))
            except Exception:
                log.exception("no receipt could be made of a call that failed", extra=self._who(order))
        return rejected

    async def _signed(
        self, order: Order, settled: Settlement | None, reason: str | None, **more: Any
    ) -> tuple[str, str]:
        assert self._receipts is not None
        sale = _sale(order, settled, reason, **more)
        with anyio.fail_after(SETTLE_S, shield=True):
            return await self._receipts.sign(sale)

    async def _gone(self, order: Order) -> None:
        """The caller hung up: whatever was set aside or charged is released."""
        await self._settled(order, "cancelled")
        await self._unheard(order, "cancelled")

    async def _unheard(self, order: Order, reason: NoCharge) -> None:
        """For the public account, when nobody takes a receipt."""
        if self._receipts is None:
            return
        owner, operation = token_hash(order.token).hex(), order.operation
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self._receipts.unheard(reason, owner, operation.endpoint, operation.credits)
        except Exception:
            log.exception("an uncharged call could not be accounted for", extra=self._who(order))

    def _who(self, order: Order) -> dict[str, str]:
        return {"tool": order.operation.name, "request_id": order.caller.request_id, "call_id": order.call_id}


def _body(order: Order, rendered: Rendered, settled: Settlement | None) -> Body:
    """What is handed over, by hash and size."""
    counted = settled.remaining if settled and order.caller.door in _WITH_CREDITS else None
    return Body(rendered.sha256(counted).hex(), rendered.size(counted))


def _sale(order: Order, settled: Settlement | None, reason: str | None, **more: Any) -> Sale:
    """A call as its receipt tells it. Without a settlement, what was charged is not known yet: it is being released."""
    operation = order.operation
    return Sale(
        order.call_id,
        token_hash(order.token).hex(),
        operation.endpoint,
        request_text(operation.method, operation.path, order.given),
        operation.credits,
        settled.charged if settled else 0,
        settled.remaining if settled else None,
        operation.method,
        reason,
        sla_s=operation.ttl(order.arguments) if operation.sla_s is None else operation.sla_s,
        nonce=order.caller.nonce,
        pending=settled is None,
        **more,
    )


def packed(sold: Sold) -> bytes:
    """A sale as bytes, to be told again to whoever repeats the call."""
    rendered = sold.rendered
    facts = {name: getattr(rendered, name) for name in _FACTS}
    return msgspec.json.encode((facts, *sold[1:])) + b"\n" + rendered.payload


def unpacked(kept: bytes) -> Sold:
    facts, _, payload = kept.partition(b"\n")
    about, *rest = msgspec.json.decode(facts)
    return Sold(Rendered(payload, **about), *rest)


def no_charge(rendered: Rendered) -> NoCharge | None:
    """Why this answer is not owed, by the table: failed before stale before empty."""
    if rendered.nothing:
        return "5xx"
    if rendered.stale:
        return "stale_data"
    return "empty_result" if rendered.no_charge == "empty_result" else None
