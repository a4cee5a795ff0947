"""Open the receipts of a service from its settings, with the keys that instances of one database share."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from toolserver.clock import Clock
from toolserver.ledger.sqlite import SqliteLedger
from toolserver.receipts.service import ReceiptService
from toolserver.receipts.sqlite import SqliteReceiptStore
from toolserver.server.shared_database import find_marks
from toolserver.server.shared_keys import SharedKeys
from toolserver.settings import Settings

if TYPE_CHECKING:
    from toolserver.ledger.client.ledger import HttpLedger

AgreeOnKeys = Callable[[], Awaitable[None]]


async def open_receipts(
    settings: Settings, clock: Clock, ledger: "SqliteLedger | HttpLedger", *, base_url: str, service: str
) -> tuple[ReceiptService, AgreeOnKeys]:
    """Return the receipts in a ledger's file or database, and a job that agrees on keys with others every few seconds.

    Raises:
        KeysDiffer: instances that share the database have different keys. KeyFileBroken, StorageFailed.
    """
    keys = SharedKeys(ledger.file, settings.data_dir, settings.scaling.keys_dir)
    await keys.require_mounted()
    evidence = ReceiptService(
        SqliteReceiptStore(ledger.file),
        settings.data_dir,
        clock=clock,
        base_url=base_url,
        service=service,
        algorithm=settings.payments.receipt_algorithm,
        find_account=ledger.find_account if isinstance(ledger, SqliteLedger) else None,
        keys_dir=settings.scaling.keys_dir,
        marks=find_marks(settings),
    )
    await keys.agree(evidence.rings)
    return evidence, partial(keys.agree, evidence.rings)
