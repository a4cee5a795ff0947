"""Defines the result of a call, which is the same for every face."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from toolserver.calls.quotas import LimitState
from toolserver.calls.response import RenderedResponse
from toolserver.calls.sale import PaidCallResult
from toolserver.core.caller import Caller


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, the same for every face. `no_charge` says why a premium answer was not charged."""

    rendered: RenderedResponse
    limit_states: list[LimitState] = field(default_factory=list)
    credits_remaining: int | None = None
    charged: int = 0
    no_charge: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None
    hit: bool = False
    key: Hashable | None = None  # under which a free answer is cached
    unchanged: bool = False  # the client already has a free answer's bytes: a 304 is enough
    settlement: dict[str, Any] | None = None  # x402: how the payment that came with the call was settled


def describe_outcome(sold: PaidCallResult, caller: Caller | None) -> Outcome:
    """Return the outcome of a sale. It carries the whole receipt unless the caller asked for a reference."""
    carried = None if caller is not None and caller.receipt_reference else sold.receipt
    return Outcome(sold.rendered, [], sold.remaining, sold.charged, sold.reason, sold.receipt_id, carried)
