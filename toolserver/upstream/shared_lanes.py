"""Decides over all instances which requests to a host get their turns, with the rules of `HostLane`.

The seat of a dead instance becomes free after a while.
"""

from typing import Literal, NamedTuple

from msgspec.msgpack import encode

from toolserver.clock import Clock
from toolserver.core.shared_memory import Script, SharedMemory, hash_name
from toolserver.upstream.host_lane import HostLane
from toolserver.upstream.shared_clock import AHEAD, READ_NOW, SharedClock

SEAT_S = 20.0  # longer than nearly all exchanges; after this an unreleased seat is free

TURN = Script(
    """
-- Keys: how far clocks are ahead, times of requests, the lane, seats, seats of callers' queries.
-- Takes `count` turns and a seat, or only a seat if the request's unit has its turns already.
-- Returns {what, microseconds}: "go", "wait" so long, "busy", "spent", or "closed" for so long.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local function left(word, seconds) return {word, math.max(1, math.ceil(seconds * 1e6))} end
local lane = redis.call('HMGET', KEYS[3], 'due', 'full', 'closed', 'closed_chosen')
local closed = tonumber(lane[asked.chosen and 4 or 3] or 0)
if closed > now then return left('closed', closed - now) end
while tonumber(redis.call('LINDEX', KEYS[2], 0) or now) <= now - asked.period do redis.call('LPOP', KEYS[2]) end
if asked.count > 0 and redis.call('LLEN', KEYS[2]) + asked.count > asked.budget then return {'spent', 0} end
local full = math.max(tonumber(lane[2] or 0), now)
local is_shared = asked.chosen and asked.interval > 0 and asked.count > 0
local filled = full + asked.count * asked.interval
if is_shared and filled - now > asked.burst * asked.interval + 1e-6 then return {'spent', 0} end
for _, seats in ipairs({KEYS[4], KEYS[5]}) do redis.call('ZREMRANGEBYSCORE', seats, '-inf', now) end
if redis.call('ZCARD', KEYS[4]) >= asked.seats then return {'busy', 0} end
if asked.chosen and redis.call('ZCARD', KEYS[5]) >= asked.chosen_seats then return {'busy', 0} end
if asked.count > 0 then
  local due = math.max(tonumber(lane[1] or 0), now) + asked.count * asked.gap
  local next_at = due - asked.at_once * asked.gap
  if next_at > now + 1e-6 then return left('wait', next_at - now) end
  local ms = math.ceil((asked.period + asked.at_once * asked.gap) * 1000) + 1000
  for _ = 1, asked.count do redis.call('RPUSH', KEYS[2], string.format('%.6f', now)) end
  redis.call('PEXPIRE', KEYS[2], ms)
  redis.call('HSET', KEYS[3], 'due', string.format('%.6f', due))
  if is_shared then redis.call('HSET', KEYS[3], 'full', string.format('%.6f', filled)) end
  redis.call('PEXPIRE', KEYS[3], math.max(ms, redis.call('PTTL', KEYS[3])))
end
for i = 4, asked.chosen and 5 or 4 do
  redis.call('ZADD', KEYS[i], string.format('%.6f', now + asked.seat), asked.token)
  redis.call('PEXPIRE', KEYS[i], math.ceil(asked.seat * 1000))
end
return {'go', 0}
"""
)
LEAVE = Script("for _, seats in ipairs(KEYS) do redis.call('ZREM', seats, ARGV[1]) end")
CLOSE = Script(
    """
-- Keys: how far clocks are ahead, the lane. A shorter time never ends a longer one.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
for _, name in ipairs(asked.names) do
  local known = tonumber(redis.call('HGET', KEYS[2], name) or 0)
  if known < now + asked.seconds then redis.call('HSET', KEYS[2], name, string.format('%.6f', now + asked.seconds)) end
end
redis.call('PEXPIRE', KEYS[2], math.max(math.ceil(asked.seconds * 1000), redis.call('PTTL', KEYS[2])))
"""
)

LaneName = tuple[str, str]
"""A host group, and a host in it if each has its own lane."""


class LaneVerdict(NamedTuple):
    """The verdict of all instances together: go, try again after `wait_s`, or refused for now."""

    word: Literal["go", "wait", "busy", "spent", "closed"]
    wait_s: float


class SharedLanes:
    """The lanes of all instances. While the memory is lost, budgets are divided by `instances`."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory, self._clock = memory, SharedClock(clock)
        self.instances = memory.instances

    @property
    def is_lost(self) -> bool:
        """True while each instance has to use its own share."""
        return self._memory.is_lost

    async def take(self, name: LaneName, lane: HostLane, token: str, *, count: int, is_chosen: bool) -> LaneVerdict:
        """Take `count` turns and a seat for a request, identified by a token, or return why there is none.

        Raises:
            SharedMemoryLost: each instance has to decide on its own.
        """
        terms = lane.terms | {"token": token, "count": count, "chosen": is_chosen, "seat": SEAT_S}
        terms = self._clock.date(terms)
        word, wait_us = await self._memory.run(TURN, _keys(name), [encode(terms)])
        return LaneVerdict(word.decode(), wait_us / 1e6)

    def leave(self, name: LaneName, token: str) -> None:
        """Free the seat of a request that has ended."""
        self._memory.send(LEAVE, _keys(name)[3:], [token.encode()])

    def close(self, name: LaneName, seconds: float, *, is_chosen: bool) -> None:
        """Refuse requests of all instances for `seconds`: callers' queries only, or all."""
        names = ["closed_chosen"] if is_chosen else ["closed", "closed_chosen"]
        keys = _keys(name)
        self._memory.send(CLOSE, [keys[0], keys[2]], [encode(self._clock.date({"seconds": seconds, "names": names}))])


def _keys(name: LaneName) -> list[bytes]:
    hashed = hash_name(" ".join(name))
    return [AHEAD, *(b"lane:" + hashed + part for part in (b":sent", b"", b":seats", b":chosen"))]
