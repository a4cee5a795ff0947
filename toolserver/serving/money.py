"""Open everything about the money of one service together: the ledger, receipts, purchases and their upkeep."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from toolserver.calls.charge_store import ReceiptedCharges, SqlChargeStore, record_died
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import MemoryIdempotencyStore, SqlIdempotencyStore
from toolserver.clock import Clock
from toolserver.core.account_statement import NoStatements, Statements
from toolserver.core.credit_sales import CreditSales, NoCreditSales
from toolserver.core.metrics import Metrics
from toolserver.errors import ToolserverError
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.protocol import AllowanceLedger, Ledger
from toolserver.money.ledger.store import FILE, SqlLedger, open_ledger
from toolserver.money.purchases.quotes import put_old_quotes_aside
from toolserver.money.purchases.service import PurchaseService, open_purchases
from toolserver.money.purchases.sql_store import SqlPurchaseStore
from toolserver.money.receipts.keys import RECEIPT_KEYS
from toolserver.money.receipts.service import AccountStatements, ReceiptService
from toolserver.money.receipts.transparency_log import CLOSE_EVERY_S
from toolserver.money.x402.service import open_x402
from toolserver.serving.background_tasks import repeat
from toolserver.serving.receipts import open_receipts
from toolserver.serving.shared_database import find_marks, open_shared_ledger
from toolserver.serving.shared_keys import AGREE_EVERY_S
from toolserver.settings import Settings
from toolserver.sql.errors import OtherWorld
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.move_mark import require_not_moved

if TYPE_CHECKING:
    from toolserver.money.ledger.client.ledger import HttpLedger
    from toolserver.money.purchases.chain.rpc_pool import ChainServers
    from toolserver.money.x402.settlement import SettlementService

log = logging.getLogger(__name__)

SWEEP_S, CHECK_S, FORGET_S = 30.0, 60.0, 600.0
MARKER = "simulated-world"


class LedgerLost(ToolserverError):
    """The data directory has keys that signed receipts but no ledger, which was deleted or is on another disk."""


class OpenToOthers(ToolserverError):
    """Users other than the owner can read the data directory, and that cannot be changed."""


OpenedLedger: TypeAlias = "SqlLedger | HttpLedger"
"""This service's own ledger, or the client of a sister service's ledger."""


@dataclass(frozen=True, slots=True)
class MoneyParts:
    """What a service needs to sell answers. `receipted_charges` and `x402` exist only with an own ledger.

    `followed` is the same ledger as `ledger` if it belongs to a sister service.
    """

    ledger: Ledger
    idempotency: Idempotency
    payments: CreditSales
    evidence: ReceiptService | None = None
    receipted_charges: ReceiptedCharges | None = None
    x402: "SettlementService | None" = None
    followed: "HttpLedger | None" = None

    @property
    def statements(self) -> Statements:
        """The source of statements: the own ledger, or the service that sells for the followed ledger."""
        if isinstance(self.ledger, SqlLedger | MemoryLedger):
            return AccountStatements(self.ledger, self.evidence)
        from toolserver.money.purchases.remote import RemotePurchases, RemoteStatements

        return RemoteStatements(self.payments) if isinstance(self.payments, RemotePurchases) else NoStatements()

    @property
    def allowances(self) -> AllowanceLedger | None:
        """The keeper of allowances: the own ledger, or that of the followed service."""
        if isinstance(self.ledger, SqlLedger | MemoryLedger):
            return self.ledger
        return self.followed

    @property
    def end_allowance(self) -> Callable[[str], Awaitable[bool]] | None:
        """The function that ends an allowance by its token's hash; None if the ledger belongs to another service."""
        own = self.ledger
        return partial(own.revoke, reason="") if isinstance(own, SqlLedger | MemoryLedger) else None

    def add_gauges(self, metrics: Metrics) -> None:
        """Add gauges for the followed ledger and for signed payments to the metrics, if there are any."""
        if (ledger := self.followed) is not None:
            metrics.follow(lambda: ledger.health)
        if self.x402 is not None:
            metrics.watch_payments(self.x402.measure_backlog)

    def count_chain_servers(self) -> "ChainServers | None":
        """Count the servers from which purchases are read; None if this service watches no chain for purchases."""
        return self.payments.count_servers() if isinstance(self.payments, PurchaseService) else None

    @property
    def file(self) -> GroupCommit | None:
        """The file of the credits, or of the journal for a sister service's credits; None if in memory."""
        return None if isinstance(self.ledger, MemoryLedger) else getattr(self.ledger, "file", None)

    @property
    def own(self) -> SqlLedger:
        """The own ledger of this service. Raises AssertionError if the ledger is followed or in memory."""
        assert isinstance(self.ledger, SqlLedger)
        return self.ledger


def keeps_books(settings: Settings) -> bool:
    """Return True if this installation sells, shares or follows a ledger, or has one. Otherwise it needs none."""
    ledger = settings.ledger
    sells = settings.payments.enabled or settings.x402.enabled or settings.database_url is not None
    return sells or ledger.url is not None or ledger.port is not None or (settings.data_dir / FILE).exists()


def memory_money(clock: Clock) -> MoneyParts:
    """Return a ledger and idempotency that end with the process, without signed receipts or sales."""
    return MoneyParts(MemoryLedger(clock), Idempotency(MemoryIdempotencyStore(clock)), NoCreditSales())


@asynccontextmanager
async def open_money(settings: Settings, *, clock: Clock, base_url: str, service: str) -> AsyncIterator[MoneyParts]:
    """Open the money parts of a data directory and sweep them while open. `service` is the name on receipts.

    Raises:
        LedgerLost, LedgerMoved: there are receipt keys but no ledger, or the ledger is now on a server.
        OpenToOthers: other users can read the directory, and that cannot be changed.
        OtherWorld: simulated and real credits would share a directory or a database.
        NotOnServer: `database_url` and another place for money are both set.
        KeysDiffer: instances that share the database have different keys.
        RowsRewritten: another program wrote rows of money.
        ReceiptKeysLost: there are receipts, but not the keys that signed them.
        NewerDatabase, ForeignDatabase, MigrationChanged, KeyFileBroken, NotAnAccountKey: nothing was changed.
    """
    close_directory(settings.data_dir)
    claim_directory(settings.data_dir, simulated=settings.upstream.via is not None)
    async with AsyncExitStack() as stack:
        open_ = stack.enter_async_context
        ledger = await open_(_open_ledger(settings, clock))
        await ledger.file.check_rows_at_start()
        evidence, agree_on_keys = await open_receipts(settings, clock, ledger, base_url=base_url, service=service)
        idempotency = Idempotency(SqlIdempotencyStore(ledger.file, clock))
        receipted_charges = x402 = followed = None
        if isinstance(ledger, SqlLedger):
            charges = SqlChargeStore(ledger, evidence.log.buckets)
            if released := await charges.release_undelivered():
                log.warning("charges for answers that were not sent were released", extra={"count": released})
            receipted_charges = ReceiptedCharges(charges, evidence, clock)
            payments = await open_(
                open_purchases(
                    settings.payments,
                    ledger.file,
                    ledger=ledger,
                    clock=clock,
                    host=service,
                    marks=find_marks(settings),
                )
            )
            x402 = await open_(
                open_x402(settings.x402, settings.payments, ledger.file, clock=clock, base_url=base_url, host=service)
            )
        else:
            await record_died(ledger.file, evidence.log.buckets, ledger.died, clock.time())
            followed, payments = ledger, await open_(_open_remote_sales(settings, ledger))
        upkeep = await open_(anyio.create_task_group())
        upkeep.start_soon(repeat, "append closed hours to the log", evidence.log.close_hours, CLOSE_EVERY_S)
        for job in _list_upkeep(settings, clock, ledger, idempotency):
            upkeep.start_soon(repeat, *job)
        if isinstance(ledger, SqlLedger) and ledger.file.shared:  # another instance may have crashed
            upkeep.start_soon(repeat, "release what was not delivered", charges.release_undelivered, SWEEP_S)
            upkeep.start_soon(repeat, "agree on keys", agree_on_keys, AGREE_EVERY_S)
        yield MoneyParts(ledger, idempotency, payments, evidence, receipted_charges, x402, followed)
        upkeep.cancel_scope.cancel()


def _list_upkeep(
    settings: Settings, clock: Clock, ledger: OpenedLedger, idempotency: Idempotency
) -> Iterator[tuple[str, Callable[[], Awaitable[Any]], float]]:
    """Yield the repeated jobs while the money parts are open: name, job, and seconds until the next run."""
    yield "look for rows that others wrote", ledger.file.check_rows, CHECK_S
    yield "forget old answers", idempotency.sweep, FORGET_S
    if isinstance(ledger, SqlLedger):
        yield "void expired reservations", ledger.sweep, SWEEP_S
        if settings.payments.enabled:
            aside = partial(
                put_old_quotes_aside, SqlPurchaseStore(ledger.file), clock, settings.payments.keep_unpaid_days
            )
            yield "put old quotes aside", aside, FORGET_S


@asynccontextmanager
async def _open_ledger(settings: Settings, clock: Clock) -> AsyncIterator[OpenedLedger]:
    least_free = settings.storage.least_free_bytes
    if settings.database_url is not None:
        async with open_shared_ledger(settings, clock) as shared:
            yield shared
        return
    require_not_moved(settings.data_dir)
    if settings.ledger.url is None:
        refuse_lost_ledger(settings.data_dir)
        async with open_ledger(settings.data_dir / FILE, clock, least_free=least_free) as ledger:
            yield ledger
        return
    from toolserver.money.ledger.client.connect import open_ledger_client

    async with open_ledger_client(settings.ledger, settings.data_dir / FILE, clock, least_free=least_free) as followed:
        yield followed


def _open_remote_sales(settings: Settings, ledger: "HttpLedger") -> AbstractAsyncContextManager[CreditSales]:
    from toolserver.money.purchases.remote import open_remote_sales

    return open_remote_sales(settings.ledger, ledger)


def close_directory(data_dir: Path) -> None:
    """Remove other users' access to a data directory, because keys and the ledger belong to its owner alone.

    Raises:
        OpenToOthers: the access cannot be removed.
    """
    if os.name == "nt" or not data_dir.is_dir():
        return
    for path in (data_dir, data_dir / "keys", *data_dir.glob("*.sqlite3*"), *data_dir.glob("keys/*.json")):
        if path.is_symlink() or not path.exists() or not (mode := path.stat().st_mode & 0o777) & 0o077:
            continue
        try:
            path.chmod(mode & 0o700)
        except OSError as error:
            reason = f"{path} is readable by other users ({mode:o}), and that cannot be changed: {error.strerror}"
            raise OpenToOthers(f"{reason}; run `chmod go= {path}` as its owner") from None
        log.warning("removed other users' access to a path", extra={"path": str(path), "mode": f"{mode:o}"})


def refuse_lost_ledger(data_dir: Path) -> None:
    """Raise LedgerLost if a new ledger would start beside the keys of an old one: nobody would have credits."""
    file, keys = data_dir / FILE, data_dir / RECEIPT_KEYS
    if (not file.exists() or not file.stat().st_size) and keys.exists():
        raise LedgerLost(
            f"{file} is missing or empty, but {keys} has signed receipts: put the ledger back, or restore a backup"
            f" (`toolserver db restore`). To start afresh, move {keys.parent} away."
        )


def claim_directory(data_dir: Path, *, simulated: bool) -> None:
    """Mark a new directory as simulated or real, or check that an old one is of the right kind.

    Raises:
        OtherWorld
    """
    marker, sold = data_dir / MARKER, (data_dir / FILE).exists()
    if simulated and not sold:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        marker.touch(mode=0o600)
    if marker.exists() != simulated:
        held, wanted = ("real", "simulated") if simulated else ("simulated", "real")
        raise OtherWorld(f"{data_dir} holds {held} credits: give the {wanted} service its own data directory")
