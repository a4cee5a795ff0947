"""Open everything about the money of one service together: the ledger, receipts, purchases and their upkeep."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from anyio.abc import TaskGroup

from toolserver.calls.charge_store import ReceiptedCharges, SqlChargeStore, record_died
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import MemoryIdempotencyStore, SqlIdempotencyStore
from toolserver.calls.visitor_tokens import KEY_FILE as VISITOR_KEY
from toolserver.clock import Clock, ClockSkew, SystemClock
from toolserver.core.metrics import Metrics
from toolserver.core.outbound import Proxies, read_proxies
from toolserver.errors import ToolserverError
from toolserver.money.ledger.client.ledger import HttpLedger, open_ledger_client
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.statements import Statements
from toolserver.money.ledger.store import FILE, SqlLedger, open_ledger
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.credit_sales import CreditSales, NoCreditSales
from toolserver.money.purchases.remote import open_remote_sales
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS
from toolserver.money.receipts.service import AccountStatements, ListPayments, ReceiptService
from toolserver.money.receipts.transparency_log import CLOSE_EVERY_S
from toolserver.serving.background_tasks import open_tasks, repeat
from toolserver.serving.receipts import open_receipts
from toolserver.serving.shared_database import find_marks, locate_ledger, open_shared_ledger
from toolserver.serving.shared_keys import AGREE_EVERY_S
from toolserver.settings import Settings
from toolserver.sql.connection import read_server_clock
from toolserver.sql.errors import OtherWorld, StorageFailed
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.high_water import FILE as MARKS
from toolserver.sql.move_mark import require_not_moved
from toolserver.sql.row_seal import KEY as ROW_KEY
from toolserver.sql.schema_version import require_current
from toolserver.webhooks.signing import KEY_FILE as WEBHOOK_KEY

if TYPE_CHECKING:  # loaded where something is sold
    from toolserver.money.chain.scanner import ChainScanner
    from toolserver.money.purchases.sql_refunds import SqlReissues
    from toolserver.money.x402.settlement import SettlementService

log = logging.getLogger(__name__)

SWEEP_S, CHECK_S, FORGET_S = 30.0, 60.0, 600.0
RENEW_S = 5.0  # a lease lasts four times as long
COMPARE_EVERY_S = 10.0  # the machine's clock with the database's, which all instances share
UNSURE_S = 1.0  # an answer of the database's clock that took longer says too little
MARKER = "simulated-world"
KEY_FILES = (RECEIPT_KEYS, LOG_KEYS, MARKS, ROW_KEY, VISITOR_KEY, WEBHOOK_KEY)  # below the data directory


class LedgerLost(ToolserverError):
    """The data directory has keys that signed receipts but no ledger, which was deleted or is on another disk."""


class OpenToOthers(ToolserverError):
    """Users other than the owner can read the data directory, and that cannot be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSales:
    """What only an own ledger that is stored offers: charges signed in their own transaction, signed payments, and the
    book of the chain.
    """

    receipted_charges: ReceiptedCharges | None = None
    x402: "SettlementService | None" = None
    chain_scanner: "ChainScanner | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyParts:
    """What a service needs to sell answers, as `open_own_money`, `open_followed_money` or `memory_money` makes it.

    Either `own`, the ledger that this service keeps, or `followed`, that of a sister service,
    is not None. In memory there is no `evidence`.
    """

    own: SqlLedger | MemoryLedger | None = None
    followed: HttpLedger | None = None
    idempotency: Idempotency
    payments: CreditSales
    statements: Statements
    evidence: ReceiptService | None = None
    stored: StoredSales = StoredSales()

    @property
    def ledger(self) -> SqlLedger | MemoryLedger | HttpLedger:
        """The ledger that tokens are checked against: the own one, or that of the sister service."""
        if self.own is not None:
            return self.own
        assert self.followed is not None
        return self.followed

    @property
    def file(self) -> GroupCommit | None:
        """The file of the credits, or of the journal for a sister service's credits; None if in memory."""
        return self.ledger.file

    @property
    def end_allowance(self) -> Callable[[str], Awaitable[bool]] | None:
        """The function that ends an allowance by its token's hash; None if the ledger belongs to another service."""
        return None if self.own is None else partial(self.own.revoke, reason="")

    def end_patience(self) -> None:
        """Give each group only its usual time: from now on callers wait."""
        if self.file is not None:
            self.file.patience_s = 0.0

    def add_gauges(self, metrics: Metrics) -> None:
        """Add gauges for the followed ledger and for signed payments to the metrics, if there are any."""
        if (ledger := self.followed) is not None:
            metrics.follow(lambda: ledger.health)
        if (settlement := self.stored.x402) is not None:
            metrics.watch_payments(settlement.measure_backlog)
        if (scanner := self.stored.chain_scanner) is not None:
            metrics.watch_chain_book(scanner.measure)


def keeps_books(settings: Settings) -> bool:
    """Return True if this installation sells, shares or follows a ledger, or has one. Otherwise it needs none."""
    ledger = settings.ledger
    sells = settings.payments.enabled or settings.x402.enabled or settings.database_url is not None
    return sells or ledger.url is not None or ledger.port is not None or (settings.data_dir / FILE).exists()


def memory_money(clock: Clock) -> MoneyParts:
    """Return a ledger and idempotency that end with the process, without signed receipts or sales."""
    ledger = MemoryLedger(clock)
    return MoneyParts(
        own=ledger,
        idempotency=Idempotency(MemoryIdempotencyStore(clock)),
        payments=NoCreditSales(),
        statements=AccountStatements(ledger, None),
    )


@asynccontextmanager
async def open_money(
    settings: Settings, *, clock: Clock, base_url: str, service: str, skew: ClockSkew | None = None
) -> AsyncIterator[MoneyParts]:
    """Open the money parts of a data directory and sweep them while open. `service` is the name on receipts.

    `skew` is measured before anything is written, and every ten seconds after that.

    Raises:
        LedgerLost, LedgerMoved: there are receipt keys but no ledger, or the ledger is now on a server.
        OpenToOthers: other users can read the directory, and that cannot be changed.
        OtherWorld: simulated and real credits would share a directory or a database.
        NotOnServer: `database_url` and another place for money are both set.
        KeysDiffer: instances that share the database have different keys.
        RowsRewritten: another program wrote rows of money.
        ReceiptKeysLost, LogKeysLost: there are receipts or a signed log, but not the keys that signed them.
        NewerDatabase, ForeignDatabase, MigrationChanged, KeyFileBroken, NotAnAccountKey: nothing was changed.
        MigrationPending: a migration is missing, and starts must not apply it.
    """
    close_directory(settings.data_dir)
    claim_directory(settings.data_dir, simulated=settings.upstream.via is not None)
    if settings.storage.migrate == "manual":
        await anyio.to_thread.run_sync(require_current, locate_ledger(settings))
    follows = settings.ledger.url is not None and settings.database_url is None
    if follows:
        async with open_followed_money(settings, clock=clock, base_url=base_url, service=service) as money:
            yield money
        return
    async with open_own_money(settings, clock=clock, base_url=base_url, service=service, skew=skew) as money:
        yield money


@asynccontextmanager
async def open_own_money(
    settings: Settings, *, clock: Clock, base_url: str, service: str, skew: ClockSkew | None = None
) -> AsyncIterator[MoneyParts]:
    """Open the money of a service that keeps its ledger, in a file or in the database of `database_url`."""
    proxies = read_proxies(settings.upstream.proxy_address)
    async with _open_own_ledger(settings, clock) as ledger:
        compare = partial(compare_clocks, ledger.file, SystemClock(), skew or ClockSkew())
        await compare()
        await ledger.file.check_rows_at_start()
        evidence, agree_on_keys = await open_receipts(
            settings, clock, ledger.file, base_url=base_url, service=service, find_account=ledger.find_account
        )
        idempotency = Idempotency(SqlIdempotencyStore(ledger.file, clock))
        charges = SqlChargeStore(ledger, evidence.log.buckets)
        if released := await charges.release_undelivered():
            log.warning("calls whose answers were not sent were released", extra={"count": released})
        opening_scanner, list_payments = _open_chain(settings, ledger.file, clock=clock, proxies=proxies)
        async with (
            _open_purchases(settings, ledger, clock=clock, host=service, proxies=proxies) as payments,
            _open_x402(settings, ledger.file, clock=clock, base_url=base_url, host=service, proxies=proxies) as x402,
            opening_scanner as chain_scanner,
            open_tasks() as upkeep,
        ):
            start_upkeep(upkeep, ledger.file, evidence, idempotency)
            upkeep.start_soon(repeat, "void expired reservations", ledger.sweep, SWEEP_S)
            upkeep.start_soon(repeat, "release what was not delivered", charges.renew_and_release, RENEW_S)
            if settings.payments.enabled:
                upkeep.start_soon(repeat, "put old quotes aside", _put_quotes_aside(settings, ledger, clock), FORGET_S)
            if ledger.file.shared:  # another instance may have crashed
                upkeep.start_soon(repeat, "compare the clocks", compare, COMPARE_EVERY_S)
                upkeep.start_soon(repeat, "agree on keys", agree_on_keys, AGREE_EVERY_S)
            yield MoneyParts(
                own=ledger,
                idempotency=idempotency,
                payments=payments,
                statements=AccountStatements(ledger, evidence, list_payments),
                evidence=evidence,
                stored=StoredSales(
                    receipted_charges=ReceiptedCharges(charges, evidence.issuer, clock),
                    x402=x402,
                    chain_scanner=chain_scanner,
                ),
            )


def _open_purchases(
    settings: Settings, ledger: SqlLedger, *, clock: Clock, host: str, proxies: Proxies
) -> AbstractAsyncContextManager[CreditSales]:
    """Open the seller of credits, whose modules are loaded only where credits are sold."""
    if not settings.payments.enabled:
        return nullcontext(ClosedPurchases(ledger, partial(_open_reissues, ledger.file, clock)))
    from toolserver.money.purchases.service import open_purchases

    marks = find_marks(settings)
    return open_purchases(
        settings.payments, ledger.file, ledger=ledger, clock=clock, host=host, marks=marks, proxies=proxies
    )


def _open_reissues(file: GroupCommit, clock: Clock) -> "SqlReissues":
    """Open the reissues of tokens, whose modules are loaded with the first balance."""
    from toolserver.money.purchases.sql_refunds import SqlReissues

    return SqlReissues(file, clock)


def _put_quotes_aside(settings: Settings, ledger: SqlLedger, clock: Clock) -> Callable[[], Awaitable[None]]:
    """Return the job that archives quotes which nobody paid."""
    from toolserver.money.purchases.quotes import put_old_quotes_aside
    from toolserver.money.purchases.store import SqlPurchaseStore

    return partial(put_old_quotes_aside, SqlPurchaseStore(ledger.file), clock, settings.payments.keep_unpaid_days)


def _open_x402(
    settings: Settings, file: GroupCommit, *, clock: Clock, base_url: str, host: str, proxies: Proxies
) -> "AbstractAsyncContextManager[SettlementService | None]":
    """Open what takes payments by x402, whose modules are loaded only where it is on."""
    if not settings.x402.enabled:
        return nullcontext()
    from toolserver.money.x402.service import open_x402

    return open_x402(settings.x402, settings.payments, file, clock=clock, base_url=base_url, host=host, proxies=proxies)


def _open_chain(
    settings: Settings, file: GroupCommit, *, clock: Clock, proxies: Proxies
) -> "tuple[AbstractAsyncContextManager[ChainScanner | None], ListPayments | None]":
    """Return what reads the chain for the books, and what lists the payments of accounts there.

    Their modules are loaded only where something is sold.
    """
    if not (settings.payments.enabled or settings.x402.enabled):
        return nullcontext(), None
    from toolserver.money.chain import service, sql_chain_transfers

    scanner = service.open_chain_scanner(settings.payments, settings.x402, file, clock=clock, proxies=proxies)
    return scanner, sql_chain_transfers.AccountPayments(file).list_own


@asynccontextmanager
async def open_followed_money(
    settings: Settings, *, clock: Clock, base_url: str, service: str
) -> AsyncIterator[MoneyParts]:
    """Open the money of a service whose ledger a sister service keeps: the client, its journal, and own receipts."""
    require_not_moved(settings.data_dir)
    least_free = settings.storage.least_free_bytes
    async with open_ledger_client(settings.ledger, settings.data_dir / FILE, clock, least_free=least_free) as ledger:
        await ledger.file.check_rows_at_start()
        evidence, _ = await open_receipts(settings, clock, ledger.file, base_url=base_url, service=service)
        idempotency = Idempotency(SqlIdempotencyStore(ledger.file, clock))
        record = partial(record_died, ledger.file, evidence.log.buckets, ledger.deliveries.died, clock)
        await record()
        async with open_remote_sales(settings.ledger, ledger) as payments, open_tasks() as upkeep:
            start_upkeep(upkeep, ledger.file, evidence, idempotency)
            upkeep.start_soon(repeat, "record what was not delivered", record, RENEW_S)
            yield MoneyParts(
                followed=ledger,
                idempotency=idempotency,
                payments=payments,
                statements=payments.statements,
                evidence=evidence,
            )


def start_upkeep(upkeep: TaskGroup, file: GroupCommit, evidence: ReceiptService, idempotency: Idempotency) -> None:
    """Start what every stored ledger or journal needs while it is open."""
    upkeep.start_soon(repeat, "append closed hours to the log", evidence.log.close_hours, CLOSE_EVERY_S)
    upkeep.start_soon(repeat, "look for rows that others wrote", file.check_rows, CHECK_S)
    upkeep.start_soon(repeat, "forget old answers", idempotency.sweep, FORGET_S)


@asynccontextmanager
async def _open_own_ledger(settings: Settings, clock: Clock) -> AsyncIterator[SqlLedger]:
    if settings.database_url is not None:
        async with open_shared_ledger(settings, clock) as shared:
            yield shared
        return
    require_not_moved(settings.data_dir)
    refuse_lost_ledger(settings.data_dir)
    least_free = settings.storage.least_free_bytes
    async with open_ledger(settings.data_dir / FILE, clock, least_free=least_free) as ledger:
        yield ledger


def close_directory(data_dir: Path) -> None:
    """Remove other users' access to a data directory, because keys and the ledger belong to its owner alone.

    A folder `keys` that has none of our files is left as it is: somebody else put it there.

    Raises:
        OpenToOthers: the access cannot be removed.
    """
    if os.name == "nt" or not data_dir.is_dir():
        return
    own_keys = [path for name in KEY_FILES if (path := data_dir / name).exists()]
    folder = [data_dir / "keys"] if own_keys else []  # one without our files is somebody else's
    for path in (data_dir, *folder, *data_dir.glob("*.sqlite3*"), *own_keys):
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


async def compare_clocks(file: GroupCommit, machine: Clock, skew: ClockSkew) -> None:
    """Measure how far the machine's clock is off, by half the time that the answer took. A file has no clock.

    While the database is away, or slow, the last measurement counts.
    """
    if not file.shared:
        return
    asked, started = machine.time(), machine.monotonic()
    try:
        theirs = await file.read(read_server_clock)
    except StorageFailed:
        return
    took_s = machine.monotonic() - started
    if took_s <= UNSURE_S:
        skew.seconds = theirs / 1000 - (asked + took_s / 2)
