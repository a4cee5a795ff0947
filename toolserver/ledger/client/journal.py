"""What a follower writes down about its calls before it asks the owner of the ledger, so that a crash loses no release.

    reserving ──▶ committing ──▶ committed ──▶ (gone: the answer was sent)
        └─────────────┴──────────────┴───────▶ releasing ──▶ (gone: the owner has acknowledged it)

A call that is still on the way when its process dies was not delivered: it is released at the next start.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

JournalStep = Literal["reserving", "committing", "committed"]
JournalState = Literal["reserving", "committing", "committed", "releasing"]

FIRST_WAIT_MS = 1000
LONGEST_WAIT_MS = 300_000


class Release(NamedTuple):
    """A release that the owner has not acknowledged yet, and how often it was sent in vain."""

    call_id: str
    reason: str
    tries: int


class Waiting(NamedTuple):
    """The number of unacknowledged releases, and the seconds until the next one is due; None when there is none."""

    size: int
    next_s: float | None


class Journal(Protocol):
    """The follower's calls on the way, and its unacknowledged releases. Any method may raise StorageFailed."""

    async def note(self, call_id: str, step: JournalStep) -> JournalState | None:
        """Note that the call is at this step and return its state before. A call to be released stays so."""
        ...

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        """Note that the call is to be released, due in `wait_s` seconds. The first reason stays."""
        ...

    async def done(self, call_id: str) -> None:
        """Forget the call: its answer was sent, or its release acknowledged."""
        ...

    async def delivered(self, call_ids: Sequence[str]) -> None:
        """Forget the calls of answers that were sent, but not those that are to be released."""
        ...

    def strike(self, call_id: str) -> None:
        """Do the same for one call, in the next transaction that is committed anyway. Nobody waits for it."""
        ...

    async def waiting(self) -> Waiting:
        """How many releases wait, and how long until the next one is due."""
        ...

    async def due(self, limit: int = 100) -> list[Release]:
        """The releases to be sent now, the longest waiting first."""
        ...

    async def later(self, call_id: str) -> None:
        """Note that the owner did not answer: the release is due again after a wait that doubles each time."""
        ...

    async def recover(self) -> list[str]:
        """Turn all calls on the way into releases, after a start: their process died. Returns their call_ids.

        The answers that are kept for their Idempotency-Keys are forgotten with them.
        """
        ...


def wait_ms(tries: int) -> int:
    """Milliseconds until a release is due again that was sent `tries` times in vain."""
    return min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(tries, 20))
