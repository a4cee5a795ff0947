"""One instance asks an upstream, all others take what it got: bodies of sources, and who fetches, in shared memory.

An instance that needs an answer first looks for a body that another one has fetched meanwhile. Where there is none, it
takes a lock and asks; those who come later wait for its body, or for the reason why there is none. The lock ends by
itself soon after its holder dies. While the memory is lost, every instance asks for itself.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import anyio

from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.upstream.body_store import StoredBody
from toolserver.upstream.fetcher import Fetched
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.shared_body import pack_body, read_failure, read_time, unpack_body, write_failure, write_time
from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceDown, SourceError

LOCK_S = 5.0  # after which the lock of an instance that died ends
RENEW_S = 1.5
FIRST_LOOK_S, LAST_LOOK_S = 0.02, 0.25  # between two looks for what another instance fetches
LONGEST_S = 150.0  # longer than any fetch takes, pacing included
FAILURE_S = 3.0  # how long it is known why a fetch failed, to those who waited for it
KEEP_S = 86_400.0  # the longest time for which a body is shared
_NEVER = datetime.max.replace(tzinfo=UTC)

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
_HELD = b"!"  # behind the token: our own pacing lets its holder wait for long

Ask = Callable[[bool], Awaitable[Fetched]]
"""Asks the upstream; with True by a conditional request, where one is possible. Raises SourceError."""
Take = Callable[[StoredBody], Awaitable[Fetched | None]]
"""Takes a body that another instance fetched. None when it cannot be used."""


class SharedFetch(Protocol):
    """Fetches an answer once for all instances."""

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        """Return the last good body that any instance fetched, if it is still kept."""
        ...

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        """Take a body that was fetched after that moment, wait for one that is being fetched, or ask for one.

        `held` is set when the pacing of the instance that asks makes it wait for long. Raises SourceError.
        """
        ...


class NotShared:
    """What an instance does that shares nothing."""

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        return None

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        return await ask(True)


@dataclass(frozen=True, slots=True)
class _Lock:
    """The right to ask. `has_body`: the memory has a body, so "not modified" says something to all."""

    keys: list[bytes]
    token: bytes
    has_body: bool


class FetchInMemory:
    """Shares bodies through a memory. Nothing in it is trusted, and what holds one of our API keys is not put there."""

    def __init__(self, memory: SharedMemory, secrets: SecretRemover) -> None:
        self._memory, self._secrets = memory, secrets

    async def find(self, source: Source[Any, Any], key: str) -> StoredBody | None:
        try:
            found = await self._memory.run(FIND, _keys(source, key)[:1], [], bulk=True)
        except SharedMemoryLost:
            return None
        return await unpack_body(source, *found)

    async def fetch(
        self, source: Source[Any, Any], key: str, after: datetime, held: anyio.Event, ask: Ask, take: Take
    ) -> Fetched:
        keys = _keys(source, key)
        while True:
            try:
                found = await self._claim(keys, after, held)
            except SharedMemoryLost:
                return await ask(True)
            if isinstance(found, _Lock):
                return await self._ask(source, found, held, ask)
            at, *packed = found
            after = read_time(at) or _NEVER
            stored = await unpack_body(source, at, *packed)
            if stored is not None and (fetched := await take(stored)) is not None:
                return fetched

    async def _claim(self, keys: list[bytes], after: datetime, held: anyio.Event) -> "_Lock | list[bytes]":
        """Return a body with its time and validators, or the lock. Raises SourceError, SharedMemoryLost."""
        token, holder, pause_s = secrets.token_hex(TOKEN_SIZE // 2).encode(), b"", FIRST_LOOK_S
        until = anyio.current_time() + LONGEST_S
        while anyio.current_time() < until:
            given = [write_time(after), token, b"%d" % (LOCK_S * 1000), holder[:TOKEN_SIZE]]
            word, *rest = await self._memory.run(CLAIM, keys, given, bulk=True)
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
        """Ask, and let the others know what came back. The lock is kept for as long as that takes."""
        outcome: Fetched | Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hold, lock, held)
                try:
                    outcome = await ask(lock.has_body)
                except Exception as error:  # raised below, outside of the group
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
        """Show what was fetched, except what is too large or says a key: then the others ask for themselves."""
        keep_s = source.fresh_s if source.user_input else min(source.fresh_s + source.keep_s, KEEP_S)
        given = [lock.token, write_time(fetched.fetched_at), b"%d" % (keep_s * 1000)]
        if fetched.body is not None:
            packed = await pack_body(fetched.body, fetched.validators, self._secrets)
            if packed is None:
                self._memory.send(FAIL, lock.keys, [lock.token, b"", b"0"], bulk=True)
                return
            given += packed
        self._memory.send(PUBLISH, lock.keys[:2], given, bulk=True)


def _keys(source: Source[Any, Any], key: str) -> list[bytes]:
    """The keys of a question: its body, its lock, and why the last fetch failed."""
    name = hash_name(f"{source.name} {key}")
    return [b"body:" + name, b"lock:" + name, b"failed:" + name]
