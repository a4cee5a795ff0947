"""Keeps the follower's journal in memory, for tests: it has the same rules, but nothing is durable."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolserver.clock import Clock
from toolserver.money.ledger.client.journal import JournalState, JournalStep, Release, Waiting, wait_ms
from toolserver.money.ledger.protocol import milliseconds
from toolserver.money.ledger.state import DIED


@dataclass(slots=True)
class _Entry:
    state: JournalState
    reason: str = ""
    tries: int = 0
    next_at: int = 0


class MemoryJournal:
    """A `Journal` in a dictionary."""

    def __init__(self, clock: Clock) -> None:
        self._now = milliseconds(clock)
        self._entries: dict[str, _Entry] = {}

    async def note(self, call_id: str, step: JournalStep) -> JournalState | None:
        known = self._entries.get(call_id)
        if known is None:
            self._entries[call_id] = _Entry(step)
            return None
        before = known.state
        if before != "releasing":
            known.state = step
        return before

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        known = self._entries.get(call_id)
        if known is None or known.state != "releasing":
            self._entries[call_id] = _Entry("releasing", reason, 0, self._now() + int(wait_s * 1000))

    async def done(self, call_id: str) -> None:
        self._entries.pop(call_id, None)

    async def delivered(self, call_ids: Sequence[str]) -> None:
        for call_id in call_ids:
            self.strike(call_id)

    def strike(self, call_id: str) -> None:
        if call_id in self._entries and self._entries[call_id].state in ("committing", "committed"):
            del self._entries[call_id]

    async def waiting(self) -> Waiting:
        times = [entry.next_at for _, entry in self._releases()]
        return Waiting(len(times), max(0.0, (min(times) - self._now()) / 1000) if times else None)

    async def due(self, limit: int = 100) -> list[Release]:
        due = [(call_id, entry) for call_id, entry in self._releases() if entry.next_at <= self._now()]
        due.sort(key=lambda each: each[1].next_at)
        return [Release(call_id, entry.reason, entry.tries) for call_id, entry in due[:limit]]

    async def later(self, call_id: str) -> None:
        if call_id in self._entries:
            entry = self._entries[call_id]
            entry.next_at, entry.tries = self._now() + wait_ms(entry.tries), entry.tries + 1

    async def recover(self) -> list[str]:
        died = [call_id for call_id, entry in self._entries.items() if entry.state != "releasing"]
        for call_id in died:
            await self.release(call_id, DIED)
        return died

    def _releases(self) -> list[tuple[str, _Entry]]:
        return [(call_id, entry) for call_id, entry in self._entries.items() if entry.state == "releasing"]
