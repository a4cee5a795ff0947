"""Authenticates what instances keep in their shared memory: others may be able to write to it.

A value carries the MAC of its name and content by a key that only the instances have. Somebody
who can write to the memory can remove a value, or put back one that an instance once wrote
under this name, whose times the reader checks. They cannot make one up, change it, or move it
to another name.
"""

import hmac
import secrets

MARK_BYTES = 16
_LENGTH_BYTES = 8


class SharedSeal:
    """Marks values by a key, which is derived from `secret`. The instances of a service have the same secret."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"toolserver values in shared memory v1", "sha256")

    def mark(self, name: bytes, *parts: bytes) -> bytes:
        """Return the mark of a value, which consists of these parts."""
        mac = hmac.new(self._key, digestmod="sha256")
        for part in (name, *parts):
            mac.update(len(part).to_bytes(_LENGTH_BYTES, "big"))
            mac.update(part)
        return mac.digest()[:MARK_BYTES]

    def is_ours(self, mark: bytes, name: bytes, *parts: bytes) -> bool:
        """Tell whether an instance with this secret wrote the value."""
        return hmac.compare_digest(mark, self.mark(name, *parts))


SEAL_OF_THIS_PROCESS = SharedSeal(secrets.token_bytes(32))
"""For services of one process that keep nothing on disk."""
