"""Defines the time by which instances count together: the server's, moved ahead if a clock is simulated."""

from toolserver.clock import Clock, SteeredClock, SystemClock

READ_NOW = """
local t = redis.call('TIME')
local now, ahead = tonumber(t[1]) + tonumber(t[2]) / 1e6, asked.ahead
if ahead then
  local known = tonumber(redis.call('GET', KEYS[1]) or '')
  if known and known >= ahead then ahead = known else redis.call('SET', KEYS[1], string.format('%.6f', ahead)) end
  now = now + ahead
end
"""
"""Sets `now` in a script whose argument is unpacked as `asked`, and whose first key is AHEAD."""
AHEAD = b"ahead"


class SharedClock:
    """Says how far our clock is ahead of the machine's. The largest lead of any instance applies to all."""

    def __init__(self, clock: Clock, machine: Clock | None = None) -> None:
        self._clock, self._machine = clock, machine or SystemClock()

    def date(self, terms: dict[str, object]) -> dict[str, object]:
        """Add the lead of our clock to a script's arguments, if our clock is simulated.

        The database's time is no simulated one, however far off the machine's clock is.
        """
        if isinstance(self._clock, SteeredClock):
            return terms
        ahead = self._clock.time() - self._machine.time()
        return terms if abs(ahead) < 1 else terms | {"ahead": ahead}
