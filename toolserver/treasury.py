"""Everything about money of one service, opened together: the books, receipts, purchases and their upkeep."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from toolserver.billing.counter import Counter
from toolserver.billing.evidence import Evidence
from toolserver.billing.idempotency import DurableIdempotency
from toolserver.billing.sqlite import FILE, SqliteLedger, opened_ledger
from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.payments.cashier import opened_payments
from toolserver.payments.offers import Payments
from toolserver.payments.x402.desk import opened_x402
from toolserver.settings import Settings
from toolserver.upkeep import repeat

if TYPE_CHECKING:
    from toolserver.billing.follower import HttpLedger
    from toolserver.payments.x402.settling import Settling

SWEEP_S, FORGET_S = 30.0, 600.0
MARKER = "simulated-world"


class OtherWorld(ToolserverError):
    """The data directory holds money of the other kind: real where a simulation was to run, or the reverse."""


Books: TypeAlias = "SqliteLedger | HttpLedger"
"""Our own, or those of a sister service."""


@dataclass(frozen=True, slots=True)
class Treasury:
    """What a service needs to sell answers. `counter` and `x402` need books of our own."""

    ledger: Books
    evidence: Evidence
    idempotency: DurableIdempotency
    payments: Payments
    counter: Counter | None = None
    x402: "Settling | None" = None

    @property
    def followed(self) -> "HttpLedger | None":
        """The ledger of a sister service, if that is where the books are."""
        return None if isinstance(self.ledger, SqliteLedger) else self.ledger


@asynccontextmanager
async def opened_treasury(settings: Settings, *, clock: Clock, base_url: str, service: str) -> AsyncIterator[Treasury]:
    """The treasury of a data directory, kept swept while it is open. `service` is the name receipts are made out in.

    Raises:
        OtherWorld: simulated credits and real ones never share a directory.
        NewerDatabase, ForeignDatabase, MigrationChanged, KeyFileBroken, NotAnAccountKey: nothing was changed.
    """
    keep_apart(settings.data_dir, simulated=settings.upstream.via is not None)
    async with AsyncExitStack() as stack:
        open_ = stack.enter_async_context
        ledger = await open_(_books(settings, clock))
        evidence = Evidence(ledger.file, settings.data_dir, clock=clock, base_url=base_url, service=service)
        idempotency = DurableIdempotency(ledger.file, clock)
        counter = x402 = None
        if isinstance(ledger, SqliteLedger):
            counter = Counter(ledger, evidence, clock)
            shared: dict[str, Any] = {"ledger": ledger, "clock": clock, "host": service}
            payments = await open_(opened_payments(settings.payments, **shared))
            x402 = await open_(opened_x402(settings.x402, settings.payments, base_url=base_url, **shared))
        else:
            payments = await open_(_sales(settings, ledger))
        upkeep = await open_(anyio.create_task_group())
        upkeep.start_soon(repeat, "forget old answers", idempotency.sweep, FORGET_S)
        if isinstance(ledger, SqliteLedger):
            upkeep.start_soon(repeat, "void expired reservations", ledger.sweep, SWEEP_S)
        yield Treasury(ledger, evidence, idempotency, payments, counter, x402)
        upkeep.cancel_scope.cancel()


@asynccontextmanager
async def _books(settings: Settings, clock: Clock) -> AsyncIterator[Books]:
    if settings.ledger.url is None:
        async with opened_ledger(settings.data_dir / FILE, clock) as ledger:
            yield ledger
        return
    from toolserver.billing.follower import opened_follower

    async with opened_follower(settings.ledger, settings.data_dir / FILE, clock) as followed:
        yield followed


def _sales(settings: Settings, ledger: "HttpLedger") -> AbstractAsyncContextManager[Payments]:
    from toolserver.payments.elsewhere import opened_sales

    return opened_sales(settings.ledger, ledger)


def keep_apart(data_dir: Path, *, simulated: bool) -> None:
    """Mark a new directory as one of the simulated world, or see that an old one is of the right kind.

    Raises:
        OtherWorld
    """
    marker, sold = data_dir / MARKER, (data_dir / FILE).exists()
    if simulated and not sold:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        marker.touch(mode=0o600)
    if marker.exists() != simulated:
        held, wanted = ("real", "simulated") if simulated else ("simulated", "real")
        raise OtherWorld(f"{data_dir} holds {held} credits: give the {wanted} service a data directory of its own")
