"""Faults that the simulation has to find: each takes out one thing that the services stand on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.money.ledger.simulation.world import Options
from toolserver.money.ledger import operations
from toolserver.money.ledger.client import journal_store, ledger

_FORGETS = "UPDATE journal SET state='releasing', reason='delivery_failed', next_at=? WHERE state<>'releasing'"


async def _sends_nothing(self: ledger.Outbox) -> float:
    return 1000.0


def _forgets_committed(db: Any, now: int) -> list[str]:
    db.execute("DELETE FROM journal WHERE state='committed'")
    db.execute(_FORGETS, (now,))
    return []


async def _gives_up(self: ledger.Outbox, release: journal_store.Release) -> None:
    try:
        await self.send(release.call_id, release.reason)
    except ledger.Unanswered:
        await self._journal.done(release.call_id)


def _without_reversal() -> Any:
    moves = {step: move for step, move in operations.MOVES.items() if step != ("posted", False)}
    return patch.object(operations, "MOVES", moves)


def _charge_after_void() -> Any:
    return patch.dict(operations.MOVES, {("voided", True): ("posted", "posted")})


def _without_outbox() -> Any:
    return patch.object(ledger.Outbox, "send_due", _sends_nothing)


MUTANTS: dict[str, tuple[Callable[[], Any], Options]] = {
    "no reversal": (_without_reversal, Options()),
    "no outbox": (_without_outbox, Options()),
    "no sweep, no outbox": (_without_outbox, Options(sweeps=False)),
    "charge after void": (_charge_after_void, Options(memory=True)),
    "forgets committed": (lambda: patch.object(journal_store, "release_all", _forgets_committed), Options()),
    "gives up releasing": (lambda: patch.object(ledger.Outbox, "_try", _gives_up), Options()),
}


@contextmanager
def mutated(name: str | None) -> Iterator[Options]:
    """The services with that fault, and how the simulation has to be set for it."""
    if name is None:
        yield Options()
        return
    fault, options = MUTANTS[name]
    with fault():
        yield options
