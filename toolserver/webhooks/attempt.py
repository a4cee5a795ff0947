"""Define the result of a delivery attempt, and the protocol of the sender that makes attempts."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from yarl import URL

GONE = 410
UNSENT = ("dns", "connect", "target_refused", "internal_error")
"""The errors after which no receiver can have the body. One of TLS may also end a connection after it was read."""


class Attempt(NamedTuple):
    """How an attempt ended. `error` is None after a 2xx, else one word. `status` is None if there was no answer.

    `retry_after_s` is set if the receiver said when to retry and that is within four minutes. `challenge` says that a
    challenge was sent, and no data.
    """

    status: int | None
    error: str | None
    duration_ms: int
    retry_after_s: float | None = None
    challenge: bool = False

    @property
    def delivered(self) -> bool:
        return self.error is None

    @property
    def maybe_read(self) -> bool:
        """True if the receiver may have read the body."""
        return not self.challenge and self.error not in UNSENT

    @property
    def gone(self) -> bool:
        """True if the receiver never wants another delivery."""
        return self.status == GONE

    @property
    def tries_allowed(self) -> int:
        """How many attempts a delivery with this result gets: one more after a 4xx other than 408, 425 and 429."""
        if self.gone or self.error == "target_refused":
            return 1
        return 2 if self.status is not None and 400 <= self.status < 500 and self.status not in (408, 425, 429) else 4


class Sender(Protocol):
    """Makes attempts."""

    async def send(self, url: URL, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """POST a body. Every behaviour of the receiver results in an Attempt."""
        ...
