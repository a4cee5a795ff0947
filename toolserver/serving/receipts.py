"""Open the receipts of a service from its settings, with the keys that instances of one database share."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from toolserver.clock import Clock
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, LogKeysLost, ReceiptKeysLost, find_key_file
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore, has_receipts, has_signed_log
from toolserver.serving.shared_database import find_marks
from toolserver.serving.shared_keys import SharedKeys
from toolserver.settings import Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import read_place

AgreeOnKeys = Callable[[], Awaitable[None]]
FindAccount = Callable[[str], Awaitable[str | None]]


def find_receipt_keys(settings: Settings) -> Path:
    """Return the path of the key file of receipts."""
    return find_key_file(settings.data_dir, RECEIPT_KEYS, settings.scaling.keys_dir)


def find_log_keys(settings: Settings) -> Path:
    """Return the path of the key file of the log of uncharged calls."""
    return find_key_file(settings.data_dir, LOG_KEYS, settings.scaling.keys_dir)


def refuse_lost_keys(settings: Settings) -> None:
    """Raise ReceiptKeysLost or LogKeysLost if a command would make a new key beside what an old one in a file signed.

    A ledger on a server is checked at the start of the service, against the keys that its
    instances have published.
    """
    ledger = settings.data_dir / FILE
    if settings.database_url is not None or not ledger.exists() or not ledger.stat().st_size:
        return
    if not (path := find_receipt_keys(settings)).exists() and read_place(ledger, has_receipts):
        raise ReceiptKeysLost(path)
    if not (path := find_log_keys(settings)).exists() and read_place(ledger, has_signed_log):
        raise LogKeysLost(path)


async def open_receipts(
    settings: Settings,
    clock: Clock,
    file: GroupCommit,
    *,
    base_url: str,
    service: str,
    find_account: FindAccount | None = None,
) -> tuple[ReceiptService, AgreeOnKeys]:
    """Return the receipts in a ledger's file or database, and a job that agrees on keys with others every few seconds.

    `find_account` names the account of a token on receipts; a followed ledger names none.

    Raises:
        KeysDiffer: instances that share the database have different keys.
        ReceiptKeysLost: there are receipts, but not the file of the keys that signed them.
        LogKeysLost: the log of uncharged calls was signed, but the file of its key is not there.
        KeyFileBroken, StorageFailed.
    """
    keys = SharedKeys(file, settings.data_dir, settings.scaling.keys_dir)
    await keys.require_mounted()
    path = find_receipt_keys(settings)
    if not path.exists() and await file.read(has_receipts):
        raise ReceiptKeysLost(path)
    if not (path := find_log_keys(settings)).exists() and await file.read(has_signed_log):
        raise LogKeysLost(path)
    evidence = ReceiptService(
        SqlReceiptStore(file),
        settings.data_dir,
        clock=clock,
        issuer=Issuer(base_url, service, settings.payments.receipt_algorithm),
        find_account=find_account,
        keys_dir=settings.scaling.keys_dir,
        marks=find_marks(settings),
    )
    await keys.agree(evidence.rings)
    return evidence, partial(keys.agree, evidence.rings)
