"""Sells a paid call with an Idempotency-Key once, and answers repeats with the sold result."""

from functools import partial

from toolserver.calls.idempotency import Idempotency, fingerprint
from toolserver.calls.kept_results import KeyClaim
from toolserver.calls.paid_call import PaidCallRunner
from toolserver.calls.sale import PaidCall, PaidCallResult, split_sale, unpack_sale
from toolserver.errors import InvalidArguments

KEY_LENGTH = 255


async def sell_once(idempotency: Idempotency, runner: PaidCallRunner, call: PaidCall, key: str) -> PaidCallResult:
    """Make the call unless the same token has already made one with the same key. The call_id is chosen here.

    Raises:
        InvalidArguments: the key is too long, or empty.
        IdempotencyConflict: the key was used for another call.
        CallRejected: nothing was charged.
        StorageFailed: the key cannot be stored, so nothing was done.
    """
    if not 1 <= len(key) <= KEY_LENGTH:
        raise InvalidArguments(f"An Idempotency-Key must have 1 to {KEY_LENGTH} characters.", errors=[])
    request = fingerprint(f"{call.operation.name} {call.arguments.model_dump_json()}")
    return await idempotency.once(
        fingerprint(call.token),
        key,
        request,
        partial(_sell, runner, call),
        pack=split_sale,
        unpack=partial(_send_again, runner, call),
        at_once=partial(_sell_at_once, runner, call),
    )


def _send_again(runner: PaidCallRunner, call: PaidCall, call_id: str, kept: bytes) -> PaidCallResult:
    """Return the result kept for the key. It is sent now if another instance sold it and died before sending it."""
    return runner.hand_over(call._replace(call_id=call_id), unpack_sale(kept))


async def _sell(runner: PaidCallRunner, call: PaidCall, call_id: str) -> PaidCallResult:
    return await runner.run(call._replace(call_id=call_id))


async def _sell_at_once(runner: PaidCallRunner, call: PaidCall, call_id: str, claim: KeyClaim) -> PaidCallResult | None:
    return await runner.sell_at_once(call._replace(call_id=call_id), claim)
