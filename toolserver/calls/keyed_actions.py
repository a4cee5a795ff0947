"""Answers an action that is repeated under its Idempotency-Key with its first answer, for a day.

Actions are the POSTs of payment and account tools. Their answers hold secrets (a webhook's, the memo of a quote), so
they are kept encrypted under the caller's token, or under the key where no token is sent: the store has neither.
Paid calls keep their answers with the charge (`toolserver.calls.paid_call`), and a payment by x402 is its own key.
"""

from collections.abc import Awaitable, Callable

from toolserver.calls.arguments import Call
from toolserver.calls.idempotency import Idempotency, KeptResult, Keyed, check_key, fingerprint
from toolserver.calls.response import RenderedResponse, pack_rendered, unpack_rendered
from toolserver.errors import IdempotencyConflict, InvalidArguments
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key

SHORTEST_ALONE = 16  # without a token, only the key keeps the answer from others at the same address


def is_keyed_action(call: Call) -> bool:
    """Return True if a call is an action that its caller may repeat under a key."""
    caller = call.caller
    return call.operation.method == "POST" and caller.idempotency_key is not None and caller.payment is None


class KeyedActions:
    """Does each action once for its key."""

    def __init__(self, idempotency: Idempotency) -> None:
        self._idempotency = idempotency

    async def once(self, call: Call, act: Callable[[], Awaitable[RenderedResponse]]) -> Keyed[RenderedResponse]:
        """Return the answer of the first action with the caller's key.

        A refused action leaves nothing: the next one with its key is a new one.

        Raises:
            InvalidArguments: the key is empty, too long, or without a token too short.
            IdempotencyConflict: the key was used for another call.
            StorageFailed: the key cannot be stored, so nothing was done.
        """
        caller = call.caller
        key, token = check_key(caller.idempotency_key or ""), caller.token
        if token is None and len(key) < SHORTEST_ALONE:
            long_enough = f"at least {SHORTEST_ALONE} characters that nobody can guess"
            raise InvalidArguments(f"Without a token an Idempotency-Key must have {long_enough}.", errors=[])
        if token is None:
            owner, kept_key = f"address {caller.client}", fingerprint(key)
        else:
            owner, kept_key = fingerprint(token), key
        box = sealing_key(token or key, fingerprint(f"action {key}").encode())

        async def work(call_id: str) -> RenderedResponse:
            return await act()

        def pack(rendered: RenderedResponse) -> KeptResult:
            return KeptResult(encrypt_token(pack_rendered(rendered).decode(), box))

        def unpack(call_id: str, stored: bytes) -> RenderedResponse:
            opened = decrypt_token(stored, box)
            if opened is None:  # a paid call has the same key
                raise IdempotencyConflict("This Idempotency-Key was already used for another call.")
            return unpack_rendered(opened.encode())

        request = fingerprint(f"{call.operation.name} {call.arguments.model_dump_json()}")
        return await self._idempotency.once(owner, kept_key, request, work, pack=pack, unpack=unpack)
