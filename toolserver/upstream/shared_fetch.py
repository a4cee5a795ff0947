"""Lets one instance query an upstream for all others, through bodies and locks in shared memory.

An instance that needs an answer first looks for a body that another instance has fetched in
the meantime. If there is none, it takes a lock and sends the request. Later instances wait
for its body or for the reason of its failure. The lock expires soon after its holder dies.
While the memory is lost, every instance sends its own requests. Shared data is not trusted:
unreadable data counts as missing.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

import anyio
import msgspec

from toolserver.core.packing import PackingDamaged, pack, run_apart, unpack
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
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
-- Returns {"found", at, validators, body}, {"failed", why}, {"wait", holder}, or {"yours", whether there is a body}.
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '')
if at and at > 1e18 then at = nil end
if at and at > tonumber(ARGV[1]) then
  return {'found', unpack(redis.call('HMGET', KEYS[1], 'at', 'validators', 'body'))}
end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[3], 'of') == ARGV[4] then
  return {'failed', redis.call('HGET', KEYS[3], 'why')}
end
local holder = redis.call('GET', KEYS[2])
if holder then return {'wait', holder} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {'yours', at and 1 or 0}
"""
)
FIND = Script("return redis.call('HMGET', KEYS[1], 'at', 'validators', 'body')")
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
-- Keys: body, lock. Arguments: token, microseconds, ms to keep, validators and body; without these two, only the time
-- of the body is new. The instance that holds the lock is believed; a late one only if it fetched later.
local at = tonumber(redis.call('HGET', KEYS[1], 'at') or '')
local is_holder = release(ARGV[1])
if at and at >= tonumber(ARGV[2]) and not is_holder then return end
if not ARGV[4] and not at then return end
redis.call('HSET', KEYS[1], 'at', ARGV[2])
if ARGV[4] then redis.call('HSET', KEYS[1], 'validators', ARGV[4], 'body', ARGV[5]) end
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
    """The right to send the request. `has_body` says that the memory has a body, so that "not modified" is useful."""

    keys: list[bytes]
    token: bytes
    has_body: bool


class FetchInMemory:
    """Shares bodies through a memory. Its data is not trusted, and bodies with one of our API keys are not shared."""

    def __init__(self, memory: SharedMemory, secrets: SecretRemover) -> None:
        self._memory, self._secrets = memory, secrets

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        try:
            at, validators, packed = await self._memory.run(FIND, _keys(source, key)[:1], [], bulk=True)
        except SharedMemoryLost:
            return None
        return await unpack_body(source, at, validators, packed)

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        keys = _keys(source, key)
        while True:
            try:
                claim = await self._claim(keys, after, held)
            except SharedMemoryLost:
                return await ask(True)
            if isinstance(claim, _Lock):
                return await self._ask(source, claim, held, ask)
            at, *packed = claim
            after = read_time(at) or _NEVER
            stored = await unpack_body(source, at, *packed)
            if stored is not None and (fetched := await take(stored)) is not None:
                return fetched

    async def _claim(self, keys: list[bytes], after: datetime, held: anyio.Event) -> "_Lock | list[bytes]":
        """Return a body with its time and validators, or the lock. Raise SourceError, SharedMemoryLost."""
        token, holder, pause_s = secrets.token_hex(TOKEN_SIZE // 2).encode(), b"", FIRST_LOOK_S
        until = anyio.current_time() + LONGEST_S
        while anyio.current_time() < until:
            claim = [write_time(after), token, b"%d" % (LOCK_S * 1000), holder[:TOKEN_SIZE]]
            word, *rest = await self._memory.run(CLAIM, keys, claim, bulk=True)
            if word == b"found":
                return list(rest)
            if word == b"yours":
                return _Lock(keys, token, bool(rest[0]))
            if word == b"failed":
                raise read_failure(rest[0])
            holder = rest[0]
            if holder.endswith(_HELD):
                held.set()
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LAST_LOOK_S)
        raise SourceDown("another instance does not get an answer", word="timeout")

    async def _ask(self, source: Source[Any, Any], lock: _Lock, held: anyio.Event, ask: Ask) -> Fetched:
        """Send the request and share its result, holding the lock until then."""
        outcome: Fetched | Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hold, lock, held)
                try:
                    outcome = await ask(lock.has_body)
                except Exception as error:  # raised below, outside the task group
                    outcome = error
                tasks.cancel_scope.cancel()
            if isinstance(outcome, Fetched):
                await self._publish(source, lock, outcome)
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

    async def _publish(self, source: Source[Any, Any], lock: _Lock, fetched: Fetched) -> None:
        """Share the fetched body, unless it is too large or contains a key: then the others send their own requests."""
        keep_s = source.fresh_s if source.user_input else min(source.fresh_s + source.keep_s, KEEP_S)
        publication = [lock.token, write_time(fetched.answer.fetched_at), b"%d" % (keep_s * 1000)]
        if fetched.body is not None:
            packed = await pack_body(fetched.body, fetched.validators, self._secrets)
            if packed is None:
                self._memory.send(FAIL, lock.keys, [lock.token, b"", b"0"], bulk=True)
                return
            publication += packed
        self._memory.send(PUBLISH, lock.keys[:2], publication, bulk=True)


def _keys(source: Source[Any, Any], key: str) -> list[bytes]:
    """Return the memory keys of a query: its body, its lock, and its last failure."""
    name = hash_name(f"{source.name} {key}")
    return [b"body:" + name, b"lock:" + name, b"failed:" + name]


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


async def unpack_body(
    source: Source[Any, Any], at: bytes | None, validators: bytes | None, packed: bytes | None
) -> StoredBody | None:
    """Return the shared body, or None if it is unreadable or larger than the source may send."""
    fetched_at = read_time(at)
    if fetched_at is None or validators is None or packed is None:
        return None
    try:
        named = msgspec.json.decode(validators, type=dict[str, str])
        return StoredBody(await unpack(packed, source.max_bytes), fetched_at, named)
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
