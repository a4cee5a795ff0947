"""Lets one instance query an upstream for all others, through bodies and locks in shared memory.

An instance that needs an answer first looks for a body that another instance has fetched in
the meantime. If there is none, it takes a lock and sends the request. Later instances wait
for its body or for the reason of its failure. The lock expires soon after its holder dies.
While the memory is lost, every instance sends its own requests. Shared data is not trusted:
a body that no instance wrote, or that cannot be read, counts as missing.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

import anyio
import msgspec

from toolserver.core.packing import PackingDamaged, pack, run_apart, unpack
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.core.shared_seal import SharedSeal
from toolserver.upstream import source as source_module
from toolserver.upstream.fetcher import Fetched
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.source import MIB, HostRefused, Source, SourceDown, SourceError, StoredBody

log = logging.getLogger(__name__)

LOCK_S = 5.0  # after this the lock of a dead instance expires
RENEW_S = 1.5
FIRST_LOOK_S, LAST_LOOK_S = 0.02, 0.25  # between two checks for the result of another instance
LONGEST_S = 150.0  # longer than any fetch takes, pacing included
FAILURE_S = 3.0  # how long the reason of a failed fetch is kept for those who waited
KEEP_S = 86_400.0  # the longest time for which a body is shared
SHARED_BYTES = 4 * MIB  # of a compressed body; larger ones are not shared
_NEVER = datetime.max.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERRORS: dict[str, type[SourceError]] = {
    each.__name__: each
    for each in (*vars(source_module).values(), RequestWithheld)
    if isinstance(each, type) and issubclass(each, SourceError) and each is not HostRefused
}

CLAIM = Script(
    """
-- Keys: body, lock, failure. Arguments: microseconds, own token, ms of the lock, token of the holder waited for.
-- Returns {"found", at, validators, body, mark}, {"failed", why}, {"wait", holder}, or {"yours", at of the body or ""}.
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '')
if at and at > 1e18 then at = nil end
if at and at > tonumber(ARGV[1]) then
  return {'found', unpack(redis.call('HMGET', KEYS[1], 'at', 'validators', 'body', 'mark'))}
end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[3], 'of') == ARGV[4] then
  return {'failed', redis.call('HGET', KEYS[3], 'why')}
end
local holder = redis.call('GET', KEYS[2])
if holder then return {'wait', holder} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {'yours', at and redis.call('HGET', KEYS[1], 'at') or ''}
"""
)
FIND = Script("return redis.call('HMGET', KEYS[1], 'at', 'validators', 'body', 'mark')")
HOLD = Script(
    """
-- Keys: lock. Arguments: token, ms, and the token with a mark where its holder waits for its turn.
local holder = redis.call('GET', KEYS[1])
if holder and string.sub(holder, 1, #ARGV[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2]) end
"""
)
_RELEASE = """
local function release(token)
  local holder = redis.call('GET', KEYS[2])
  if not holder or string.sub(holder, 1, #token) ~= token then return false end
  redis.call('DEL', KEYS[2])
  return true
end
"""
PUBLISH = Script(
    _RELEASE
    + """
-- Keys: body, lock. Arguments: token, microseconds, ms to keep, validators, body, mark.
-- The instance that holds the lock is believed; a late one only if it fetched later.
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '')
local is_holder = release(ARGV[1])
if at and at >= tonumber(ARGV[2]) and not is_holder then return end
redis.call('HSET', KEYS[1], 'at', ARGV[2], 'validators', ARGV[4], 'body', ARGV[5], 'mark', ARGV[6])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
"""
)
FAIL = Script(
    _RELEASE
    + """
-- Keys: body, lock, failure. Arguments: token, why, ms.
if release(ARGV[1]) and ARGV[2] ~= '' then
  redis.call('HSET', KEYS[3], 'of', ARGV[1], 'why', ARGV[2])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
"""
)
TOKEN_SIZE = 16
_HELD = b"!"  # after the token: our own pacing makes its holder wait for long

Ask = Callable[[bool], Awaitable[Fetched]]
"""Queries the upstream, with True by a conditional request if possible. Raises SourceError."""
Take = Callable[[StoredBody], Awaitable[Fetched | None]]
"""Uses a body that another instance fetched. Returns None if it cannot be used."""


class SharedFetch(Protocol):
    """Fetches an answer once for all instances."""

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        """Return the last good body that any instance fetched, if it is still stored."""
        ...

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        """Return a body fetched after a given time, waiting for a running fetch or sending a request.

        `held` is set if pacing makes the fetching instance wait for long. Raises SourceError.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Lock:
    """The right to send the request. `confirmable` says that the memory has the newest body,
    so that "not modified" is useful.
    """

    keys: list[bytes]
    token: bytes
    confirmable: bool


class SharedBody(NamedTuple):
    """A body as it stands in the memory: its time, its validators, the compressed bytes, and the mark of all three."""

    at: bytes
    validators: bytes
    packed: bytes
    mark: bytes


class FetchInMemory:
    """Shares bodies through a memory. Its data is not trusted, and bodies with one of our API keys are not shared."""

    def __init__(self, memory: SharedMemory, secrets: SecretRemover, seal: SharedSeal) -> None:
        self._memory, self._secrets, self._seal = memory, secrets, seal

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        keys = _keys(source, key)
        shared = await self._find(source, keys)
        return None if shared is None else await unpack_body(source, shared)

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        keys, was_readable = _keys(source, key), True
        while True:
            try:
                claim = await self._claim(keys, after, held)
            except SharedMemoryLost:
                return await ask(True)
            if isinstance(claim, _Lock):
                lock = claim if was_readable else replace(claim, confirmable=False)
                return await self._ask(source, lock, after, held, ask)
            after = read_time(claim[0]) or _NEVER
            shared = await self._check(source, keys, claim)
            stored = None if shared is None else await unpack_body(source, shared)
            was_readable = stored is not None
            if stored is not None and (fetched := await take(stored)) is not None:
                return fetched

    async def _find(self, source: Source[Any, Any], keys: list[bytes]) -> SharedBody | None:
        try:
            found = await self._memory.run(FIND, keys[:1], [], bulk=True)
        except SharedMemoryLost:
            return None
        return await self._check(source, keys, found)

    async def _check(
        self, source: Source[Any, Any], keys: list[bytes], found: Sequence[bytes | None]
    ) -> SharedBody | None:
        """Return the body that was found in the memory if one of the instances wrote it."""
        at, validators, packed, mark = found
        if at is None or validators is None or packed is None:
            return None
        shared = SharedBody(at, validators, packed, mark or b"")
        if not await run_apart(len(packed), lambda: self._seal.is_ours(shared.mark, keys[0], *shared[:-1])):
            log.warning("no instance wrote what is shared as a body", extra={"source": source.name})
            return None
        return shared

    async def _claim(self, keys: list[bytes], after: datetime, held: anyio.Event) -> "_Lock | list[bytes | None]":
        """Return a body as it was found, or the lock. Raise SourceError, SharedMemoryLost."""
        token, holder, pause_s = secrets.token_hex(TOKEN_SIZE // 2).encode(), b"", FIRST_LOOK_S
        until = anyio.current_time() + LONGEST_S
        while anyio.current_time() < until:
            claim = [write_time(after), token, b"%d" % (LOCK_S * 1000), holder[:TOKEN_SIZE]]
            word, *rest = await self._memory.run(CLAIM, keys, claim, bulk=True)
            if word == b"found":
                return list(rest)
            if word == b"yours":
                return _Lock(keys, token, (read_time(rest[0]) or _EPOCH) >= after)
            if word == b"failed":
                raise read_failure(rest[0])
            holder = rest[0]
            if holder.endswith(_HELD):
                held.set()
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LAST_LOOK_S)
        raise SourceDown("another instance does not get an answer", word="timeout")

    async def _ask(
        self, source: Source[Any, Any], lock: _Lock, after: datetime, held: anyio.Event, ask: Ask
    ) -> Fetched:
        """Send the request and share its result, holding the lock until then."""
        outcome: Fetched | Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hold, lock, held)
                try:
                    outcome = await ask(lock.confirmable)
                except Exception as error:  # raised below, outside the task group
                    outcome = error
                tasks.cancel_scope.cancel()
            if isinstance(outcome, Fetched):
                await self._publish(source, lock, after, outcome)
        finally:
            if not isinstance(outcome, Fetched):
                why = write_failure(outcome, self._secrets) if isinstance(outcome, SourceError) else b""
                self._memory.send(FAIL, lock.keys, [lock.token, why, b"%d" % (FAILURE_S * 1000)], bulk=True)
        if isinstance(outcome, Fetched):
            return outcome
        assert outcome is not None
        raise outcome

    async def _hold(self, lock: _Lock, held: anyio.Event) -> None:
        while True:
            with anyio.move_on_after(RENEW_S):
                await (anyio.sleep(RENEW_S) if held.is_set() else held.wait())
            marked = lock.token + (_HELD if held.is_set() else b"")
            self._memory.send(HOLD, lock.keys[1:2], [lock.token, b"%d" % (LOCK_S * 1000), marked], bulk=True)

    async def _publish(self, source: Source[Any, Any], lock: _Lock, after: datetime, fetched: Fetched) -> None:
        """Share the fetched body, or the one that is there with the time at which the upstream confirmed it.

        If that is not possible, or the body is too large or contains a key, the others send their own requests.
        """
        if fetched.body is not None:
            packed = await pack_body(fetched.body, fetched.validators, self._secrets)
        else:
            shared = await self._find(source, lock.keys)
            is_newest = shared is not None and (read_time(shared.at) or _EPOCH) >= after
            packed = [shared.validators, shared.packed] if shared is not None and is_newest else None
        if packed is None:
            self._memory.send(FAIL, lock.keys, [lock.token, b"", b"0"], bulk=True)
            return
        keep_s = source.fresh_s if source.user_input else min(source.fresh_s + source.keep_s, KEEP_S)
        at = write_time(fetched.answer.fetched_at)
        validators, body = packed
        mark = await run_apart(len(body), lambda: self._seal.mark(lock.keys[0], at, validators, body))
        record = [lock.token, at, b"%d" % (keep_s * 1000), validators, body, mark]
        self._memory.send(PUBLISH, lock.keys[:2], record, bulk=True)


def _keys(source: Source[Any, Any], key: str) -> list[bytes]:
    """Return the memory keys of a query: its body, its lock, and its last failure."""
    name = hash_name(f"{source.name} {key}")
    return [b"sealed:" + name, b"lock:" + name, b"failed:" + name]


class _Failure(NamedTuple):
    """Why a fetch failed: the kind of the error, its word and detail, and when to retry."""

    kind: str
    word: str
    detail: str
    retry_after_s: float | None


def write_time(at: datetime) -> bytes:
    """Return a time as microseconds since 1970, which is exact."""
    return b"%d" % ((at - _EPOCH) // timedelta(microseconds=1))


def read_time(at: bytes | None) -> datetime | None:
    """Return a written time, or None if it is not one."""
    try:
        return None if at is None else _EPOCH + timedelta(microseconds=int(at))
    except (ValueError, OverflowError):
        return None


async def pack_body(body: bytes, validators: dict[str, str], secrets: SecretRemover) -> list[bytes] | None:
    """Return the validators and the body, or None if they are too large to share or contain one of our API keys."""
    named = msgspec.json.encode(validators)
    if await run_apart(len(body), lambda: secrets.is_in(body) or secrets.is_in(named)):
        return None
    packed = await pack(body)
    return [named, packed] if len(packed) <= SHARED_BYTES else None


async def unpack_body(source: Source[Any, Any], shared: SharedBody) -> StoredBody | None:
    """Return the shared body, or None if it is unreadable or larger than the source may send."""
    fetched_at = read_time(shared.at)
    if fetched_at is None:
        return None
    try:
        validators = msgspec.json.decode(shared.validators, type=dict[str, str])
        return StoredBody(await unpack(shared.packed, source.max_bytes), fetched_at, validators)
    except (msgspec.DecodeError, PackingDamaged) as error:
        log.warning("what instances share cannot be read", extra={"source": source.name, "reason": str(error)[:100]})
        return None


def write_failure(error: SourceError, secrets: SecretRemover) -> bytes:
    """Return why a fetch failed, without our API keys."""
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS)
    detail = secrets.clean_text(str(error))[:100]
    return msgspec.msgpack.encode(_Failure(kind, error.word, detail, error.retry_after_s))


def read_failure(why: bytes) -> SourceError:
    """Return the error that was written."""
    try:
        failure = msgspec.msgpack.decode(why, type=_Failure)
    except msgspec.DecodeError:
        return SourceDown("another instance got no answer")
    kind = _ERRORS.get(failure.kind, SourceDown)
    return kind(failure.detail, word=failure.word, retry_after_s=failure.retry_after_s)
