"""Defines the memory that instances of one service share for a while, and may lose at any time.

The rules are next to the code that uses them (`calls/shared_limits`), each as one script that
runs in one step. `storage/redis` runs them. All users continue without the memory when it is
lost.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol


class SharedMemoryLost(Exception):
    """The shared memory is not available now. The request may or may not have been carried out."""


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
    """A Lua script, identified on the server by the hash of its text.

    With `many` it takes one argument per run and is the body of a function of `keys`,
    `argument` and `now` (the server's time in seconds). Simultaneous runs are then sent to
    the server together.
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

    While the memory is lost, limits are divided by `instances`. With `bulk`, values may be
    large and the answer may take longer: these scripts use a separate connection, so that
    limits do not wait for them.
    """

    instances: int

    @property
    def is_lost(self) -> bool:
        """True while the memory is not available."""
        ...

    async def run(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> Any:
        """Return the script's result: numbers, bytes, None, and lists of these. Raise SharedMemoryLost."""
        ...

    def send(self, script: Script, keys: list[bytes], arguments: list[bytes], *, bulk: bool = False) -> None:
        """Run a script without waiting for it. If the memory is lost, nothing happens."""
        ...


def hash_name(name: str) -> bytes:
    """Return a short name of fixed size for a key, which does not reveal the original."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()
