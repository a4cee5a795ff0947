"""Keeps rendered answers outside the process: on disk for use after a restart, and in memory shared by instances.

Instances that share a memory return the same bytes until they expire. The instance that composes an answer offers it,
and all instances return the first answer offered for that time. An answer that is composed ahead is offered for the
time from which it takes over.
"""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import msgspec

from toolserver import __version__
from toolserver.calls.response import RenderedResponse
from toolserver.core.packing import PackingDamaged, pack, unpack
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name

MOST_BYTES = 8 << 20  # of a shared payload
CLOCKS_APART_S = 30.0  # the tolerated difference between clocks of instances
COMPOSING_S = 60.0  # longer than composing takes

_VALID_AT = """
local function find(at)
  for _, key in ipairs(KEYS) do
    local from, till, packed = unpack(redis.call('HMGET', key, 'from', 'until', 'packed'))
    from, till = tonumber(from or ''), tonumber(till or '')
    if from and till and packed and from <= at and at < till then return packed, key end
  end
end
"""
FIND = Script(
    _VALID_AT
    + """
-- Keys: two places. Argument: epoch seconds. Returns what is valid then.
return (find(tonumber(ARGV[1])))
"""
)
OFFER = Script(
    _VALID_AT
    + """
-- Keys: two places, of the answer of now and of the next one. Arguments: when it begins, the same for a clock that is
-- late, until, now (epoch seconds), the answer, and the one that was found unreadable.
-- Returns the answer that was offered first for that time.
local packed, place = find(tonumber(ARGV[1]))
if packed and packed ~= ARGV[6] then return packed end
if not place then
  local _, taken = find(tonumber(ARGV[4]))
  place = taken == KEYS[1] and KEYS[2] or KEYS[1]
end
redis.call('HSET', place, 'from', ARGV[2], 'until', ARGV[3], 'packed', ARGV[5])
redis.call('PEXPIRE', place, math.max(1, math.ceil((tonumber(ARGV[3]) - tonumber(ARGV[4])) * 1000)))
return ARGV[5]
"""
)


class StoredAnswers(Protocol):
    """A store in which rendered answers outlive the process."""

    async def load_answer(self, key: str) -> Any: ...

    def save_answer(self, key: str, stored: Any, *, expires_at: float) -> None: ...


class AnswerFacts(msgspec.Struct, frozen=True):
    """The stored facts of an answer besides its payload."""

    generated_at: float
    expires_at: float
    oldest_at: float | None
    no_charge: str | None = None

    def make_response(self, payload: bytes) -> RenderedResponse:
        """Return the original answer."""
        return RenderedResponse(payload, self.generated_at, self.expires_at, self.oldest_at, no_charge=self.no_charge)


def collect_facts(rendered: RenderedResponse) -> AnswerFacts:
    """Return the facts of an answer."""
    return AnswerFacts(rendered.generated_at, rendered.expires_at, rendered.oldest_at, rendered.no_charge)


def _is_keepable(rendered: RenderedResponse) -> bool:
    return not (rendered.nothing or rendered.stale)


class SharedResponses:
    """The answers that instances share. Its content is not trusted: an unreadable answer counts as missing."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory

    async def find(self, name: str, *, at: float, ttl_s: float) -> RenderedResponse | None:
        """Return the answer for the time `at`, if any instance has offered one."""
        try:
            packed = await self._memory.run(FIND, _keys(name), [_write(at)], bulk=True)
        except SharedMemoryLost:
            return None
        return None if packed is None else await _read(packed, at, ttl_s)

    async def offer(
        self, name: str, rendered: RenderedResponse, *, starts_at: float, now: float, ttl_s: float
    ) -> RenderedResponse:
        """Return the answer of all instances from `starts_at` on: this one, or one that was offered before."""
        if rendered.expires_at <= starts_at or len(rendered.payload) > MOST_BYTES:
            return rendered
        packed = await pack(msgspec.json.encode(collect_facts(rendered)) + b"\n" + rendered.payload)
        begins = starts_at if starts_at > now else now - CLOCKS_APART_S  # the clock of another instance may be late
        times, unreadable = [_write(each) for each in (starts_at, begins, rendered.expires_at, now)], b""
        for _ in range(2):
            try:
                offered = await self._memory.run(OFFER, _keys(name), [*times, packed, unreadable], bulk=True)
            except SharedMemoryLost:
                return rendered
            if offered == packed:
                return rendered
            if (earlier := await _read(offered, starts_at, ttl_s)) is not None:
                return earlier
            unreadable = offered
        return rendered


class StoredResponses:
    """The answers of a service on disk and in a shared memory; either may be missing. `space` keeps services apart."""

    def __init__(
        self,
        space: str,
        *,
        disk: StoredAnswers | None = None,
        pack: Callable[[bytes, dict[str, Any]], Any] | None = None,
        shared: SharedResponses | None = None,
    ) -> None:
        self._space, self._disk, self._pack, self._shared = f"{__version__}|{space}", disk, pack, shared

    async def load(self, key: Hashable, *, now: float, ttl_s: float) -> RenderedResponse | None:
        """Return the current answer: the shared one, otherwise the one on disk, or None."""
        shared = await self.find(key, at=now, ttl_s=ttl_s)
        if shared is not None or self._disk is None:
            return shared
        stored = await self._disk.load_answer(self._name(key))
        if not stored:
            return None
        rendered = AnswerFacts(**stored.facts).make_response(stored.payload)
        return await self._offer(key, rendered, starts_at=now, now=now, ttl_s=ttl_s)

    async def find(self, key: Hashable, *, at: float, ttl_s: float) -> RenderedResponse | None:
        """Return the answer of all instances at the time `at`, if it is known."""
        return None if self._shared is None else await self._shared.find(self._name(key), at=at, ttl_s=ttl_s)

    async def keep(
        self, key: Hashable, rendered: RenderedResponse, *, starts_at: float, now: float, ttl_s: float
    ) -> RenderedResponse:
        """Keep a newly composed answer, and return the answer of all instances from `starts_at` on."""
        if not _is_keepable(rendered):
            return await self.find(key, at=starts_at, ttl_s=ttl_s) or rendered
        rendered = await self._offer(key, rendered, starts_at=starts_at, now=now, ttl_s=ttl_s)
        if self._disk is not None and self._pack is not None:
            packed = self._pack(rendered.payload, msgspec.structs.asdict(collect_facts(rendered)))
            self._disk.save_answer(self._name(key), packed, expires_at=rendered.expires_at)
        return rendered

    async def _offer(self, key: Hashable, rendered: RenderedResponse, **times: float) -> RenderedResponse:
        return rendered if self._shared is None else await self._shared.offer(self._name(key), rendered, **times)

    def _name(self, key: Hashable) -> str:
        return f"{self._space}|{key!r}"


def _keys(name: str) -> list[bytes]:
    hashed = hash_name(name)
    return [b"answer:" + hashed + b":a", b"answer:" + hashed + b":b"]


def _write(at: float) -> bytes:
    return b"%.6f" % at


async def _read(packed: bytes, at: float, ttl_s: float) -> RenderedResponse | None:
    """Return the offered answer, or None if it is unreadable or valid for longer than its `ttl_s` allows."""
    try:
        facts, _, payload = (await unpack(packed, MOST_BYTES + 1000)).partition(b"\n")
        kept_facts = msgspec.json.decode(facts, type=AnswerFacts)
    except (PackingDamaged, msgspec.DecodeError):
        return None
    is_usual = (
        kept_facts.generated_at <= at + CLOCKS_APART_S
        and at < kept_facts.expires_at <= kept_facts.generated_at + ttl_s + COMPOSING_S
    )
    return kept_facts.make_response(payload) if is_usual and payload.endswith(b"}") else None
