"""Defines a sale: one call to a premium tool, its result, and the contents of its receipt."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import msgspec
from pydantic import BaseModel

from toolserver.calls.disconnect import Receive
from toolserver.calls.kept_results import KeptResult, SharedBytes
from toolserver.calls.response import RenderedResponse
from toolserver.core.caller import Caller, token_hash
from toolserver.errors import BillingUnavailable, PaymentRequired
from toolserver.money.ledger.protocol import NoCharge, Settlement
from toolserver.money.receipts.sign import Body, Sale, request_text
from toolserver.registry.registry import Operation
from toolserver.sql.errors import StorageFailed

_FACTS = ("generated_at", "expires_at", "oldest_at", "stale", "nothing", "no_charge")
_WITH_CREDITS = ("mcp", "stdio")  # on these channels the answer says what is left, and the receipt covers it


class PaidCall(NamedTuple):
    """A call to a premium tool, and the token that pays for it. `given` are the arguments as the caller wrote them.

    `receive` is the caller's connection, if there is one; it is watched while an answer is made.
    """

    call_id: str
    operation: Operation
    arguments: BaseModel
    given: Mapping[str, Any]
    caller: Caller
    token: str
    receive: Receive | None = None

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields that identify the call in the log."""
        return {"tool": self.operation.name, "request_id": self.caller.request_id, "call_id": self.call_id}


class PaidCallResult(NamedTuple):
    """The answer to a paid call, the credits charged and left, and the receipt.

    `reason` says why nothing was charged. `remaining` is None if the ledger did not answer.
    """

    rendered: RenderedResponse
    charged: int
    remaining: int | None
    reason: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None


class PaymentSale(NamedTuple):
    """An answer sold for its own payment. `settlement` is shown to the caller; it is None if nothing was taken."""

    sold: PaidCallResult
    settlement: dict[str, Any] | None


class CallPayments(Protocol):
    """Sells single answers for payments that come with the call, without a token."""

    def add_offer(self, operation: Operation, rejected: PaymentRequired) -> None:
        """Add a payment offer to a refusal, unless it already has one."""
        ...

    async def sell(
        self, operation: Operation, arguments: BaseModel, given: Mapping[str, Any], caller: Caller
    ) -> PaymentSale:
        """Answer a call that comes with a payment. Raise CallRejected."""
        ...

    async def find_settlement(self, text: str | None) -> dict[str, Any] | None:
        """Return how a payment sent with the call was settled, or None if it was not settled or cannot be read."""
        ...


def show_answer(caller: Caller, rendered: RenderedResponse) -> RenderedResponse:
    """Return the answer in the form that this caller requested, which its receipt covers."""
    return rendered.short if caller.short_meta else rendered


def describe_body(call: PaidCall, rendered: RenderedResponse, settled: Settlement | None) -> Body:
    """Return the hash and the size of the delivered bytes."""
    counted = settled.remaining if settled and call.caller.transport in _WITH_CREDITS else None
    return Body(rendered.sha256(counted).hex(), rendered.size(counted))


def describe_sale(call: PaidCall, settled: Settlement | None, reason: str | None, **more: Any) -> Sale:
    """Return what the receipt says of the call. Without a settlement the charge is unknown: it is being released."""
    operation = call.operation
    return Sale(
        call.call_id,
        token_hash(call.token).hex(),
        operation.endpoint,
        request_text(operation.method, operation.path, call.given),
        operation.credits,
        settled.charged if settled else 0,
        settled.remaining if settled else None,
        operation.method,
        reason,
        sla_s=operation.ttl(call.arguments) if operation.sla_s is None else operation.sla_s,
        nonce=call.caller.nonce,
        pending=settled is None,
        **more,
    )


def split_sale(sold: PaidCallResult) -> KeptResult:
    """Split the result for repeats of the call with its Idempotency-Key.

    Its own part belongs to this call alone; all buyers of the answer share the facts and the payload.
    """
    rendered, (charged, remaining, reason, receipt_id, receipt) = sold.rendered, sold[1:]
    shared = rendered.memo.get("shared")
    if shared is None:
        facts = {name: getattr(rendered, name) for name in _FACTS}
        shared = rendered.memo["shared"] = SharedBytes(msgspec.json.encode(facts) + b"\n" + rendered.payload)
    own = msgspec.json.encode((charged, remaining, reason, receipt_id)) + b"\n"
    return KeptResult(own, shared, receipt or "")


def unpack_sale(kept: bytes) -> PaidCallResult:
    """Restore the result that `split_sale` split. Earlier versions wrote facts and receipt on the first line too."""
    own, _, rest = kept.partition(b"\n")
    about = msgspec.json.decode(own)
    if isinstance(about[0], dict):
        return PaidCallResult(RenderedResponse(rest, **about[0]), *about[1:])
    receipt, facts, payload = rest.split(b"\n", 2)
    rendered = RenderedResponse(payload, **msgspec.json.decode(facts))
    charged, remaining, reason, receipt_id = about
    return PaidCallResult(rendered, charged, remaining, reason, receipt_id, receipt.decode() or None)


def show_settled(settled: Settlement) -> tuple[int, int | None, str | None]:
    """Return the credits charged, the credits left, and why nothing was charged, or None."""
    return settled.charged, settled.remaining, settled.reason


def no_charge_reason(rendered: RenderedResponse) -> NoCharge | None:
    """Return why this answer is not charged, or None. Failed takes precedence over stale, and stale over empty."""
    if rendered.nothing:
        return "5xx"
    if rendered.stale:
        return "stale_data"
    return "empty_result" if rendered.no_charge == "empty_result" else None


@contextmanager
def name_storage_failure() -> Iterator[None]:
    """Raise the StorageFailed behind a BillingUnavailable, so that the caller learns that the storage failed."""
    try:
        yield
    except BillingUnavailable as refusal:
        if isinstance(refusal.__cause__, StorageFailed):
            raise refusal.__cause__ from None
        raise
