"""Shares answers among instances: all return the one that any of them offered first for a time.

What stands in the shared memory is not trusted: an answer that no instance wrote, or that
cannot be read, counts as missing.
"""

import logging

import msgspec

from toolserver.calls.response import AnswerFacts, RenderedResponse
from toolserver.core.packing import PackingDamaged, pack, run_apart, unpack
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.core.shared_seal import MARK_BYTES, SharedSeal

log = logging.getLogger(__name__)

MOST_SHARED_BYTES = 8 << 20  # of a shared payload
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


class SharedResponses:
    """The answers that instances share."""

    def __init__(self, memory: SharedMemory, seal: SharedSeal) -> None:
        self._memory, self._seal = memory, seal

    async def find(self, name: str, *, at: float, ttl_s: float) -> RenderedResponse | None:
        """Return the answer for the time `at`, if any instance has offered one."""
        try:
            packed = await self._memory.run(FIND, _keys(name), [b"%.6f" % at], bulk=True)
        except SharedMemoryLost:
            return None
        return None if packed is None else await self._read(name, packed, at, ttl_s)

    async def offer(
        self, name: str, rendered: RenderedResponse, *, starts_at: float, now: float, ttl_s: float
    ) -> RenderedResponse:
        """Return the answer of all instances from `starts_at` on: this one, or one that was offered before."""
        if rendered.expires_at <= starts_at or len(rendered.payload) > MOST_SHARED_BYTES:
            return rendered
        packed = await self._pack(name, rendered)
        begins = starts_at if starts_at > now else now - CLOCKS_APART_S  # the clock of another instance may be late
        times, unreadable = [b"%.6f" % each for each in (starts_at, begins, rendered.expires_at, now)], b""
        for _ in range(2):
            try:
                offered = await self._memory.run(OFFER, _keys(name), [*times, packed, unreadable], bulk=True)
            except SharedMemoryLost:
                return rendered
            if offered == packed:
                return rendered
            if (earlier := await self._read(name, offered, starts_at, ttl_s)) is not None:
                return earlier
            unreadable = offered
        return rendered

    async def _pack(self, name: str, rendered: RenderedResponse) -> bytes:
        """Return the mark of an answer, and the answer."""
        packed = await pack(msgspec.json.encode(AnswerFacts.of(rendered)) + b"\n" + rendered.payload)
        return await run_apart(len(packed), lambda: self._seal.mark(_encode(name), packed) + packed)

    async def _read(self, name: str, marked: bytes, at: float, ttl_s: float) -> RenderedResponse | None:
        """Return the offered answer.

        Return None if no instance wrote it, it is unreadable, or valid for longer than its `ttl_s` allows.
        """
        mark, packed = marked[:MARK_BYTES], marked[MARK_BYTES:]
        if not await run_apart(len(packed), lambda: self._seal.is_ours(mark, _encode(name), packed)):
            log.warning("no instance wrote what is shared as an answer")
            return None
        try:
            facts, _, payload = (await unpack(packed, MOST_SHARED_BYTES + 1000)).partition(b"\n")
            stored = msgspec.json.decode(facts, type=AnswerFacts)
        except (PackingDamaged, msgspec.DecodeError):
            return None
        is_current = stored.generated_at <= at + CLOCKS_APART_S and at < stored.expires_at
        is_usual = is_current and stored.expires_at <= stored.generated_at + ttl_s + COMPOSING_S
        return stored.make_response(payload) if is_usual and payload.endswith(b"}") else None


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _keys(name: str) -> list[bytes]:
    hashed = hash_name(name)
    return [b"answer:" + hashed + b":a", b"answer:" + hashed + b":b"]
