"""Sums the counts of calls over all instances: each adds its new counts and reads the sums of all.

The shared memory has a word as its identity, which it loses together with its data. An instance that finds a different
word adds all its counts, so that the sums are complete again after the memory was emptied.
"""

import secrets
from typing import Any

from msgspec.msgpack import encode

from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost
from toolserver.core.usage_stats import KEEP_H, Usage

EXCHANGE = Script(
    """
-- Keys: the word of the memory, and one for each hour. Asked: the word that is known, a new one, what to add to which
-- hour, ms to keep. Returns {word, whether it is new}, and the sums of all hours if the word was known.
local asked = cmsgpack.unpack(ARGV[1])
local word = redis.call('GET', KEYS[1])
local is_new = not word
if is_new then word = asked.new end
redis.call('SET', KEYS[1], word, 'PX', asked.keep)
if word ~= asked.known then return {word, is_new and 1 or 0} end
for _, each in ipairs(asked.add) do
  redis.call('HINCRBY', KEYS[each[1]], each[2], each[3])
  redis.call('PEXPIRE', KEYS[each[1]], asked.keep)
end
local sums = {}
for i = 2, #KEYS do sums[i - 1] = redis.call('HGETALL', KEYS[i]) end
return {word, 0, sums}
"""
)
EVERY_S = 10.0
KEEP_MS = KEEP_H * 3_600_000
TRIES = 3  # the memory may be emptied again in the meantime

Counts = dict[tuple[int, str], int]


class SharedUsage:
    """Exchanges one instance's counts with the others. Counts restored from its disk were already added."""

    def __init__(self, usage: Usage, memory: SharedMemory) -> None:
        self._usage, self._memory = usage, memory
        self._word = b""
        self._added: Counts = _collect(usage)

    async def exchange(self) -> None:
        """Add the counts since the last exchange, and pass the counts of the other instances to `usage`."""
        try:
            for _ in range(TRIES):
                if await self._exchange():
                    return
        except SharedMemoryLost:
            return  # try again next time

    async def _exchange(self) -> bool:
        """Return True if the memory is the known one. Otherwise it is adopted, and nothing was added."""
        own, hours = _collect(self._usage), self._usage.list_hours()
        places = {hour: number for number, hour in enumerate(hours, 2)}
        new = [
            (places[hour], family, hits - self._added.get((hour, family), 0))
            for (hour, family), hits in own.items()
            if hour in places and hits > self._added.get((hour, family), 0)
        ]
        request = {"known": self._word.decode(), "new": secrets.token_hex(8), "add": new, "keep": KEEP_MS}
        keys = [b"usage", *(b"usage:%d" % hour for hour in hours)]
        word, is_new, *sums = await self._memory.run(EXCHANGE, keys, [encode(request)], bulk=True)
        if not sums:
            if self._word or is_new:
                self._added = {}
            self._word = word
            return False
        self._added = own
        hits_by_family = {hour: _read_sums(pairs) for hour, pairs in zip(hours, sums[0], strict=True)}
        self._usage.take_others(
            {
                (hour, family): hits - own.get((hour, family), 0)
                for hour, families in hits_by_family.items()
                for family, hits in families.items()
            }
        )
        return True


def _collect(usage: Usage) -> Counts:
    return {(hour, family): hits for hour, family, hits in usage.rows()}


def _read_sums(pairs: list[Any]) -> dict[str, int]:
    """Return the hits by family of one hour, without values that are not numbers."""
    family_hits = zip(pairs[::2], pairs[1::2], strict=True)
    return {family.decode(errors="replace"): int(hits) for family, hits in family_hits if hits.isdigit()}
