"""Defines the journal of a follower: it records calls before requests go to the ledger's owner, so no release is lost.

    reserving ──▶ committing ──▶ committed ──▶ (gone: the answer was sent)
        └─────────────┴──────────────┴───────▶ releasing ──▶ (gone: the owner has acknowledged it)

A call that is still in progress when its process dies was not delivered, so it is released at the next start.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

JournalStep = Literal["reserving", "committing", "committed"]
JournalState = Literal["reserving", "committing", "committed", "releasing"]

FIRST_WAIT_MS = 1000
LONGEST_WAIT_MS = 300_000


class Release(NamedTuple):
    """A release that the owner has not acknowledged yet, and the number of failed tries."""

    call_id: str
    reason: str
    tries: int


class Waiting(NamedTuple):
    """The number of unacknowledged releases, and the seconds until the next one is due (None if there is none)."""

    size: int
    next_s: float | None


class Journal(Protocol):
    """The follower's calls in progress, and its unacknowledged releases. Any method may raise StorageFailed."""

    async def note(self, call_id: str, step: JournalStep) -> JournalState | None:
        """Note that the call is at this step and return its state before. A call that is to be released stays that
        way.
        """
        ...

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        """Note that the call is to be released, due in `wait_s` seconds. The first reason stays."""
        ...

    async def done(self, call_id: str) -> None:
        """Forget the call: its answer was sent, or its release acknowledged."""
        ...

    async def delivered(self, call_ids: Sequence[str]) -> None:
        """Forget calls whose answers were sent, except those that are to be released."""
        ...

    def strike(self, call_id: str) -> None:
        """Forget one delivered call in the next transaction that is committed anyway. Returns without waiting."""
        ...

    async def waiting(self) -> Waiting:
        """Return how many releases are waiting, and the seconds until the next one is due."""
        ...

    async def due(self, limit: int = 100) -> list[Release]:
        """Return the releases that are due, the longest waiting first."""
        ...

    async def later(self, call_id: str) -> None:
        """Note that the owner did not answer: the release is due again after a wait that doubles each time."""
        ...

    async def recover(self) -> list[str]:
        """Turn all calls in progress into releases after a start, because their process died. Returns their call_ids.

        The answers that are kept for their Idempotency-Keys are forgotten with them.
        """
        ...


def wait_ms(tries: int) -> int:
    """Return the milliseconds until a release is due again after `tries` failed tries."""
    return min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(tries, 20))
