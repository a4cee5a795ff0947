"""Shares the circuits of sources between instances: failures of one reduce the requests of all, and one probes for all.

A script repeats the rules of `core/circuit_breaker` for failures in a row.
"""

from typing import Literal

from msgspec.msgpack import encode

from toolserver.clock import Clock
from toolserver.core.circuit_breaker import BreakerPolicy, State
from toolserver.core.shared_memory import Script, SharedMemory, hash_name
from toolserver.upstream.shared_clock import AHEAD, READ_NOW, SharedClock

PROBE_S = 60.0  # after this the probe of a dead instance is abandoned
KEEP_S = 86_400.0  # how long failures in a row are remembered

ADMIT = Script(
    """
-- Keys: how far clocks are ahead, the circuit. Returns {state, microseconds until the next probe}.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local found = redis.call('HMGET', KEYS[2], 'until', 'probe')
local open_until, probe = tonumber(found[1] or ''), tonumber(found[2] or '')
if not open_until then return {'closed', 0} end
if open_until > now then return {'open', math.ceil((open_until - now) * 1e6)} end
if probe and probe > now then return {'open', 0} end
redis.call('HSET', KEYS[2], 'probe', string.format('%.6f', now + asked.probe))
return {'half_open', 0}
"""
)
RECORD = Script(
    """
-- Keys: how far clocks are ahead, the circuit. A result after the circuit has opened is ignored until one probes.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local found = redis.call('HMGET', KEYS[2], 'until', 'probe', 'wait')
local wait, is_open = tonumber(found[3] or ''), found[1]
if is_open and not found[2] then return end
if asked.result == 'good' then
  redis.call('DEL', KEYS[2])
  return
end
if asked.result == 'nothing' then
  redis.call('HDEL', KEYS[2], 'probe')
  return
end
if is_open then
  wait = math.min(2 * wait, asked.longest)
elseif redis.call('HINCRBY', KEYS[2], 'failures', 1) >= asked.failures then
  wait = asked.first
end
if wait then
  redis.call('HSET', KEYS[2], 'until', string.format('%.6f', now + wait), 'wait', wait)
  redis.call('HDEL', KEYS[2], 'probe')
end
redis.call('PEXPIRE', KEYS[2], asked.keep * 1000)
"""
)


class SharedCircuits:
    """The circuits of one kind of queries, by the names of sources."""

    def __init__(self, memory: SharedMemory, clock: Clock, *, kind: str) -> None:
        self._memory, self._clock, self._kind = memory, SharedClock(clock), kind

    async def admit(self, name: str) -> tuple[State, float]:
        """Return the state of a circuit, and the seconds until the next probe may be sent.

        "half_open" says that this instance sends the probe. Raises SharedMemoryLost.
        """
        asked = self._clock.date({"probe": PROBE_S})
        state, us = await self._memory.run(ADMIT, self._keys(name), [encode(asked)])
        return state.decode(), us / 1e6

    def record(self, name: str, result: Literal["good", "bad", "nothing"], policy: BreakerPolicy) -> None:
        """Count a result. After "nothing", the next request probes."""
        numbers = {"failures": policy.failures_in_a_row, "first": policy.first_wait_s, "longest": policy.longest_wait_s}
        asked = self._clock.date({"result": result, "keep": KEEP_S, **numbers})
        self._memory.send(RECORD, self._keys(name), [encode(asked)])

    def _keys(self, name: str) -> list[bytes]:
        return [AHEAD, b"circuit:" + hash_name(f"{self._kind} {name}")]
