"""What `toolserver ledger …` and `toolserver db …` do; each answers with plain values, for a table or for JSON."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolserver.access import well_formed
from toolserver.billing.books import key_of
from toolserver.billing.invariants import breaches, totals
from toolserver.billing.ledger import fingerprint_of
from toolserver.billing.sqlite import FILE, opened_ledger
from toolserver.billing.tables import hash_of, read_standing
from toolserver.payloads import iso
from toolserver.storage.backup import back_up, restore, stamp


async def balance(data_dir: Path, who: str) -> dict[str, Any]:
    """How a token's account stands, by the token or its fingerprint. Raises PaymentRequired: invalid_token."""
    async with opened_ledger(data_dir / FILE) as ledger:
        stands = await ledger.file.read(lambda db: read_standing(db, _key(db, who)))
    return {
        "fingerprint": stands.fingerprint,
        "credits": stands.credits,
        "held": stands.held,
        "issued_at": _time(stands.issued_at),
        "state": "valid" if stands.revoked is None else "expired",
        "reason": stands.revoked,
    }


async def holds(data_dir: Path, *, limit: int = 100) -> list[dict[str, Any]]:
    """Reservations that are open, the first to expire first."""
    async with opened_ledger(data_dir / FILE) as ledger:
        found = await ledger.holds(limit)
    return [hold._asdict() | {"expires_at": _time(hold.expires_at)} for hold in found]


async def sweep(data_dir: Path) -> dict[str, Any]:
    """Void what is past its time."""
    async with opened_ledger(data_dir / FILE) as ledger:
        return {"voided": await ledger.sweep()}


async def check(data_dir: Path) -> dict[str, Any]:
    """Whether every rule of the books holds: `ok`, and if not, which does not and where. The totals beside it."""
    async with opened_ledger(data_dir / FILE) as ledger:
        found = await ledger.check()
        sums = await ledger.file.apart(totals)
    return {"ok": not found, "breaches": [breach._asdict() for breach in found], **sums._asdict()}


async def revoke(data_dir: Path, fingerprint: str, reason: str) -> dict[str, Any]:
    """Make a token invalid for good. Raises PaymentRequired: invalid_token."""
    async with opened_ledger(data_dir / FILE) as ledger:
        return {"revoked": await ledger.revoke(fingerprint, reason)}


def backup(data_dir: Path, to: Path | None = None) -> dict[str, Any]:
    """Copy the ledger, running or not, and look whether file and books are sound. Raises BackupFailed."""
    to = to or data_dir / "backups" / f"ledger-{stamp()}.sqlite3"
    return {"backup": str(to), "bytes": back_up(data_dir / FILE, to, problems=_book_problems)}


def restored(data_dir: Path, backup: Path) -> dict[str, Any]:
    """Put a backup in the ledger's place; what was there is kept beside it. Raises BackupFailed, DatabaseInUse."""
    aside = restore(data_dir / FILE, backup, problems=_book_problems)
    return {"restored": str(data_dir / FILE), "kept": str(aside) if aside else None}


def _key(db: sqlite3.Connection, who: str) -> str:
    return key_of(who) if well_formed(who) else hash_of(db, fingerprint_of(who))


def _book_problems(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the books; an open reservation may be of any age in a backup."""
    return [f"{breach.rule}: {breach.where}" for breach in breaches(db, 0)]


def _time(seconds: float) -> str:
    return iso(datetime.fromtimestamp(seconds, UTC))
