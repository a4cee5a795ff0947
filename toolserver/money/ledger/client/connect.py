"""Connects a service to the ledger of a sister service: opens it with its journal, runs it, and closes it in order."""

import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from toolserver.clock import Clock, SystemClock
from toolserver.core.circuit_breaker import CircuitBreaker
from toolserver.core.http_client import HttpClient, Transport
from toolserver.money.ledger.client.http import LedgerOwnerClient
from toolserver.money.ledger.client.ledger import HttpLedger
from toolserver.money.ledger.client.sqlite_journal import SqliteJournal
from toolserver.settings import LedgerSettings as Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.sqlite import durable

log = logging.getLogger(__name__)

CLOSE_S = 2.0  # for the journal and the connection, at the end


@asynccontextmanager
async def open_ledger_client(
    settings: Settings,
    path: Path,
    clock: Clock | None = None,
    *,
    transport: Transport | None = None,
    least_free: int = 0,
) -> AsyncIterator[HttpLedger]:
    """Open the ledger at `settings.url`, with a journal in a local file. Raises as `durable` does."""
    async with (
        durable(path, least_free=least_free) as file,
        run_ledger_client(settings, file, clock or SystemClock(), transport=transport) as ledger,
    ):
        yield ledger


@asynccontextmanager
async def run_ledger_client(
    settings: Settings,
    file: GroupCommit,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> AsyncIterator[HttpLedger]:
    """Run the client over an open file. Calls that were in progress when the previous process ended are released
    first.
    """
    ledger = build_ledger_client(settings, file, clock, transport=transport, chance=chance)
    try:
        ledger.died = await ledger.journal.recover()
        if ledger.died:
            log.warning("calls died with the process before; they are released", extra={"count": len(ledger.died)})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.owner.look_after, ledger.outbox.wake)
            tasks.start_soon(ledger.outbox.run)
            try:
                yield ledger
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await ledger.deliveries.finish_all()
            await ledger.owner.aclose()


def build_ledger_client(
    settings: Settings,
    file: GroupCommit,
    clock: Clock,
    *,
    transport: Transport | None = None,
    chance: Callable[[], float] = random.random,
) -> HttpLedger:
    """Return the client without its background tasks. Raises ValueError if url, key_id or secret is not set."""
    if settings.url is None or settings.key_id is None or settings.secret is None:
        raise ValueError("to follow a ledger, set url, key_id and secret")
    owner = LedgerOwnerClient(
        HttpClient(settings.url, transport=transport),
        key_id=settings.key_id,
        secret=settings.secret.get_secret_value(),
        service=settings.service,
        breaker=CircuitBreaker(clock, chance=chance),
        clock=clock,
        chance=chance,
    )
    return HttpLedger(owner, SqliteJournal(file, clock), file, service=settings.service, clock=clock)
