"""What is sold: one call to a premium tool, its result, and what its receipt says."""

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
from toolserver.ledger.protocol import NoCharge, Settlement
from toolserver.receipts.sign import Body, Sale, request_text
from toolserver.registry.registry import Operation
from toolserver.storage.errors import StorageFailed

_FACTS = ("generated_at", "expires_at", "oldest_at", "stale", "nothing", "no_charge")
_WITH_CREDITS = ("mcp", "stdio")  # there the answer says what is left, and the receipt covers it


class PaidCall(NamedTuple):
    """A call to a premium tool, and the token that pays for it. `given` are the arguments as the caller wrote them.

    `receive` is the caller's connection, where there is one: it is watched while an answer is made.
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
        """What names the call in the log."""
        return {"tool": self.operation.name, "request_id": self.caller.request_id, "call_id": self.call_id}


class PaidCallResult(NamedTuple):
    """The answer to a paid call, the credits charged and left, and the receipt.

    `reason` says why nothing was charged. `remaining` is None when the ledger did not answer.
    """

    rendered: RenderedResponse
    charged: int
    remaining: int | None
    reason: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None


class PaymentSale(NamedTuple):
    """An answer sold for a payment of its own. `settlement` is shown to the caller; None when nothing was taken."""

    sold: PaidCallResult
    settlement: dict[str, Any] | None


class CallPayments(Protocol):
    """Sells single answers for payments that come with the call, without a token."""

    def add_offer(self, operation: Operation, rejected: PaymentRequired) -> None:
        """Put an offer to pay into a refusal, unless there is one already."""
        ...

    async def sell(
        self, operation: Operation, arguments: BaseModel, given: Mapping[str, Any], caller: Caller
    ) -> PaymentSale:
        """Answer a call that comes with a payment. Raises CallRejected."""
        ...

    async def find_settlement(self, text: str | None) -> dict[str, Any] | None:
        """How a payment that was sent along was settled; None when it was not, or cannot be read."""
        ...


def show_answer(caller: Caller, rendered: RenderedResponse) -> RenderedResponse:
    """The answer as this caller wants it, which is what its receipt covers."""
    return rendered.short if caller.short_meta else rendered


def describe_body(call: PaidCall, rendered: RenderedResponse, settled: Settlement | None) -> Body:
    """The hash and the size of the bytes that are handed over."""
    counted = settled.remaining if settled and call.caller.transport in _WITH_CREDITS else None
    return Body(rendered.sha256(counted).hex(), rendered.size(counted))


def describe_sale(call: PaidCall, settled: Settlement | None, reason: str | None, **more: Any) -> Sale:
    """What the receipt says of the call. Without a settlement the charge is not known yet: it is being released."""
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
    """The result, to be sent again when the same call is repeated with its Idempotency-Key: what is of this call alone,
    and the facts and the payload, which all have in common to whom the answer is sold.
    """
    rendered, (charged, remaining, reason, receipt_id, receipt) = sold.rendered, sold[1:]
    shared = rendered.memo.get("shared")
    if shared is None:
        facts = {name: getattr(rendered, name) for name in _FACTS}
        shared = rendered.memo["shared"] = SharedBytes(msgspec.json.encode(facts) + b"\n" + rendered.payload)
    own = msgspec.json.encode((charged, remaining, reason, receipt_id)) + b"\n"
    return KeptResult(own, shared, receipt or "")


def unpack_sale(kept: bytes) -> PaidCallResult:
    """The result that `split_sale` split. Earlier versions wrote the facts and the receipt on the first line too."""
    own, _, rest = kept.partition(b"\n")
    about = msgspec.json.decode(own)
    if isinstance(about[0], dict):
        return PaidCallResult(RenderedResponse(rest, **about[0]), *about[1:])
    receipt, facts, payload = rest.split(b"\n", 2)
    rendered = RenderedResponse(payload, **msgspec.json.decode(facts))
    charged, remaining, reason, receipt_id = about
    return PaidCallResult(rendered, charged, remaining, reason, receipt_id, receipt.decode() or None)


def show_settled(settled: Settlement) -> tuple[int, int | None, str | None]:
    """What a result says of the settlement: the credits charged and left, and why nothing was charged."""
    return settled.charged, settled.remaining, settled.reason


def no_charge_reason(rendered: RenderedResponse) -> NoCharge | None:
    """Why this answer is not charged; None when it is. Failed comes before stale, stale before empty."""
    if rendered.nothing:
        return "5xx"
    if rendered.stale:
        return "stale_data"
    return "empty_result" if rendered.no_charge == "empty_result" else None


@contextmanager
def name_storage_failure() -> Iterator[None]:
    """Say that the storage fails, where a refusal says only that billing is out of order because of it."""
    try:
        yield
    except BillingUnavailable as refusal:
        if isinstance(refusal.__cause__, StorageFailed):
            raise refusal.__cause__ from None
        raise
