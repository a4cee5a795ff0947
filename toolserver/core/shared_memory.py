"""What instances of one service share for a while, and may lose at any time: what they count.

The rules stand beside what they decide (`calls/shared_limits`), each as one script that runs in one step.
`storage/redis` runs them. All who use it go on without it when it is lost.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol


class SharedMemoryLost(Exception):
    """The shared memory cannot be used now. What was asked of it may have happened or not."""


_EACH = """
local function decide(keys, argument, now)
BODY
end
local t = redis.call('TIME')
local now, found, last = tonumber(t[1]) + tonumber(t[2]) / 1e6, {}, 0
for run = 1, #ARGV / 2 do
  local count = tonumber(ARGV[2 * run - 1])
  found[run] = decide({unpack(KEYS, last + 1, last + count)}, ARGV[2 * run], now)
  last = last + count
end
return found
"""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script, known to the server by the hash of its text.

    With `many` it takes one argument a run, and is the body of a function of `keys`, `argument` and `now` (the server's
    time in seconds): runs that are asked for in the same moment then go to the server as one.
    """

    text: str
    many: bool = False
    sha: bytes = field(init=False)

    def __post_init__(self) -> None:
        if self.many:
            object.__setattr__(self, "text", _EACH.replace("BODY", self.text))
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode())


class SharedMemory(Protocol):
    """Runs scripts where all instances see the result.

    `instances` is among how many a limit is divided while the memory is lost. With `bulk`, values may be large and
    the answer may take longer: such scripts have a connection of their own, so that no limit waits for them.
    """

    instances: int

    @property
    def is_lost(self) -> bool:
        """Whether the memory cannot be used now."""
        ...

    async def run(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> Any:
        """Return what the script returns: numbers, bytes, None, and lists of these. Raises SharedMemoryLost."""
        ...

    def send(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> None:
        """Run a script without waiting for it; when the memory is lost, nothing happens."""
        ...


def hash_name(name: str) -> bytes:
    """Return a short name of bounded size for a key, from which the original cannot be read."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()
