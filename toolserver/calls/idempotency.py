"""Makes repeated calls one call: the result is kept for a day under a key that the caller chooses.

A kept result has its own part and a part that it shares with other results.

Paid calls keep their answers with the charge (`toolserver.calls.paid_call`), and a payment by
x402 is its own key. Actions are the POSTs of payment and account tools: `KeyedActions`. Their
answers hold secrets (a webhook's, the memo of a quote), so they are kept encrypted under the
caller's token, or under the key where no token is sent: the store has neither.
"""

import hashlib
import logging
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import anyio

from toolserver.calls.arguments import Call
from toolserver.calls.response import RenderedResponse, pack_rendered, unpack_rendered
from toolserver.core.caller import new_call_id
from toolserver.errors import IdempotencyConflict, InvalidArguments
from toolserver.money.purchases.token_encryption import decrypt_token, encrypt_token, sealing_key
from toolserver.sql.errors import StorageFailed

if TYPE_CHECKING:
    from toolserver.money.ledger.protocol import Settlement
    from toolserver.money.receipts.sign import StoredReceipt

KeyName: TypeAlias = tuple[str, str]
"""A scope, such as the fingerprint of a token, and the caller's key within it."""


class KeyedCall(NamedTuple):
    """A call with a key: the fingerprint of its request, the call_id it charges under, and its result if done."""

    request: str
    call_id: str
    result: bytes | None = None


class KeyClaim(NamedTuple):
    """The key that a call claims, and the fingerprint of its request."""

    name: KeyName
    request: str


class KeyTaken(Exception):
    """The key belongs to an `earlier` call. Nothing was done."""

    def __init__(self, earlier: KeyedCall) -> None:
        super().__init__(earlier.call_id)
        self.earlier = earlier


class SharedBytes:
    """Bytes that many results share, hashed and compressed once, when they are first kept."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    @cached_property
    def packed(self) -> bytes:
        return zlib.compress(self.content, 1)


class KeptResult(NamedTuple):
    """A result to keep: its own part, and the bytes at its end that it shares with other results, if any.

    The receipt of the call is a line between them. It is stored only with the receipts.
    """

    own: bytes
    shared: SharedBytes | None = None
    receipt: str = ""

    @property
    def whole(self) -> bytes:
        """Return all parts joined, as they are returned to a caller."""
        return self.own if self.shared is None else join_result(self.own, self.receipt, self.shared.content)


class KeyedCharge(NamedTuple):
    """The Idempotency-Key of a charge, and the result to keep for it."""

    claim: KeyClaim
    pack: "Callable[[Settlement, StoredReceipt], KeptResult]"


class NewKeyedCall(NamedTuple):
    """A call to be stored with its result."""

    claim: KeyClaim
    call_id: str
    result: KeptResult


def join_result(own: bytes, receipt: str, shared: bytes) -> bytes:
    """Return the parts of a result joined."""
    return own + receipt.encode() + b"\n" + shared


log = logging.getLogger(__name__)

KEY_LENGTH = 255

T = TypeVar("T")

Work = Callable[[str], Awaitable[T]]
Unpack = Callable[[str, bytes], T]
AtOnce = Callable[[str, KeyClaim], Awaitable[T | None]]


def fingerprint(text: str) -> str:
    """Return the SHA-256 in hex, which names a token or a request without revealing it."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_key(key: str) -> str:
    """Return an Idempotency-Key that a caller sent. Raises InvalidArguments if it is too long, or empty."""
    if not 1 <= len(key) <= KEY_LENGTH:
        raise InvalidArguments(f"An Idempotency-Key must have 1 to {KEY_LENGTH} characters.", errors=[])
    return key


class Keyed(NamedTuple, Generic[T]):
    """The result for a key, and whether it is that of an earlier call."""

    result: T
    is_repeated: bool


@dataclass(slots=True)
class _RunningWork:
    """Work in progress in this process, for calls that wait for the same result. The first waiter creates `done`."""

    request: str
    done: anyio.Event | None = None
    result: Any = None
    succeeded: bool = False

    async def wait(self) -> None:
        """Wait until the work has ended."""
        self.done = self.done or anyio.Event()
        await self.done.wait()


class IdempotencyStore(Protocol):
    """Calls by scope and key, each kept for `KEEP_S` seconds from its start. Any method may raise StorageFailed."""

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        """Return the call under this name, or a new one with this request and call_id, which is then stored."""
        ...

    async def keep(self, name: KeyName, result: KeptResult) -> bytes | None:
        """Store the result of the call under this name unless it has one. Return its result, or None if it is gone."""
        ...

    async def drop(self, name: KeyName, call_id: str) -> None:
        """Forget the call under this name, if it is still the one with this call_id."""
        ...

    async def sweep(self) -> int:
        """Forget expired calls, and return their number."""
        ...


class Idempotency:
    """Does work once for each key.

    The call_id is stored before the work begins, and the result when it is done. A key
    without a result belongs to work that died with its process. That work is done again under
    the same call_id, so that the ledger charges for it once.

    Work that can be done at once stores its key and its result itself, in the transaction that charges for it.
    """

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store
        self._running: dict[KeyName, _RunningWork] = {}

    async def once(
        self,
        scope: str,
        key: str,
        request: str,
        work: Work[T],
        *,
        pack: Callable[[T], KeptResult],
        unpack: Unpack[T],
        at_once: AtOnce[T] | None = None,
    ) -> Keyed[T]:
        """Return the result of the first call with this key in this scope. A simultaneous call waits for it.

        `work` gets the call_id under which it may charge. `pack` turns its result into bytes;
        `unpack` restores the result from the call_id and those bytes. If the work raises,
        nothing is kept, and the next call is a new one. `at_once` also gets the key. It does
        the work and stores the result in one step, raises KeyTaken, or returns None if that
        is not possible.

        Raises:
            IdempotencyConflict: the key was used for another request.
            StorageFailed: the store cannot be written, so the work was not started.
        """
        name = (scope, key)
        while (running := self._running.get(name)) is not None:
            _check_same_request(running.request, request)
            await running.wait()
            if running.succeeded:
                return Keyed(running.result, is_repeated=True)
        running = self._running[name] = _RunningWork(request)
        try:
            keyed = await self._find_or_do(KeyClaim(name, request), work, pack, unpack, at_once)
            running.result, running.succeeded = keyed.result, True
            return keyed
        finally:
            del self._running[name]
            if running.done is not None:
                running.done.set()

    async def sweep(self) -> int:
        """Forget results that are older than a day, and return their number."""
        return await self._store.sweep()

    async def _find_or_do(
        self,
        claim: KeyClaim,
        work: Work[T],
        pack: Callable[[T], KeptResult],
        unpack: Unpack[T],
        at_once: AtOnce[T] | None,
    ) -> Keyed[T]:
        call_id, keyed = new_call_id(), None
        if at_once is not None:
            try:
                if (done := await at_once(call_id, claim)) is not None:
                    return Keyed(done, is_repeated=False)
            except KeyTaken as taken:
                keyed = taken.earlier
        keyed = keyed or await self._store.begin(claim.name, claim.request, call_id)
        _check_same_request(keyed.request, claim.request)
        if keyed.result is not None:
            return Keyed(unpack(keyed.call_id, keyed.result), is_repeated=True)
        return await self._do(claim.name, keyed, work, pack, unpack)

    async def _do(
        self, name: KeyName, keyed: KeyedCall, work: Work[T], pack: Callable[[T], KeptResult], unpack: Unpack[T]
    ) -> Keyed[T]:
        """Do the work of a call that is stored without a result, and store the result.

        If another instance did the same work and stored its result first, that result counts for both.
        """
        try:
            result = await work(keyed.call_id)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _log_failure(self._store.drop(name, keyed.call_id))
            raise
        own = pack(result)
        stored = await _log_failure(self._store.keep(name, own))
        if stored is None or stored == own.whole:
            return Keyed(result, is_repeated=False)
        return Keyed(unpack(keyed.call_id, stored), is_repeated=True)


async def _log_failure(write: Awaitable[T]) -> T | None:
    """Wait for a write, and log its failure: a charged call is answered even if its answer cannot be kept."""
    try:
        return await write
    except StorageFailed:
        log.exception("an idempotent answer could not be kept")
        return None


def _check_same_request(first: str, request: str) -> None:
    """Raise IdempotencyConflict if a key is used for another request."""
    if first != request:
        raise IdempotencyConflict("This Idempotency-Key was already used with other arguments.")


SHORTEST_ALONE = 16  # without a token, only the key keeps the answer from others at the same address


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
