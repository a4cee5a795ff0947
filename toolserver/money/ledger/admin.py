"""Implements `toolserver ledger …` and `toolserver db …`. Each function returns plain values, for a table or JSON."""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolserver.clock import Clock, SystemClock
from toolserver.core.caller import well_formed
from toolserver.core.models import iso
from toolserver.money.ledger.sql_invariants import Breach, find_problems
from toolserver.money.ledger.store import FILE, SqlLedger, open_ledger
from toolserver.sql.backup import back_up, restore, stamp
from toolserver.sql.ledger_place import LedgerPlace, open_place
from toolserver.sql.sealed_file import note_restored

log = logging.getLogger(__name__)

WRITTEN = "every row was written by this service"


async def begin(data_dir: Path) -> None:
    """Create the ledger if it does not exist."""
    async with open_ledger(data_dir / FILE):
        pass


@asynccontextmanager
async def _opened(place: LedgerPlace, clock: Clock | None = None) -> AsyncIterator[SqlLedger]:
    async with open_place(place) as file:
        yield SqlLedger(file, clock or SystemClock())


async def balance(place: LedgerPlace, who: str) -> dict[str, Any]:
    """Return the account of a token, given by the token or its fingerprint. Raises PaymentRequired: invalid_token."""
    async with _opened(place) as ledger:
        standing = await (ledger.standing(who) if well_formed(who) else ledger.standing_of_fingerprint(who))
    return {
        "fingerprint": standing.fingerprint,
        "credits": standing.credits,
        "held": standing.held,
        "issued_at": _time(standing.issued_at),
        "state": "valid" if standing.revoked is None else "expired",
        "reason": standing.revoked,
    }


async def holds(place: LedgerPlace, *, limit: int = 100) -> list[dict[str, Any]]:
    """Return the open reservations, the earliest to expire first."""
    async with _opened(place) as ledger:
        open_holds = await ledger.holds(limit)
    return [hold._asdict() | {"expires_at": _time(hold.expires_at)} for hold in open_holds]


async def sweep(place: LedgerPlace, *, clock: Clock | None = None) -> dict[str, Any]:
    """Void the expired reservations and return how many there were."""
    async with _opened(place, clock) as ledger:
        return {"voided": await ledger.sweep()}


async def check(place: LedgerPlace) -> dict[str, Any]:
    """Check every invariant of the ledger, and that only this service wrote the rows of the money tables.

    Returns `ok`, the `breaches` if there are any, `unsealed` if rows are not sealed, with the reason, and the totals.
    """
    async with _opened(place) as ledger:
        breaches = [Breach(WRITTEN, where) for where in await ledger.file.find_rewritten()]
        unsealed = await ledger.file.describe_sealing()
        breaches += await ledger.check()
        sums = await ledger.totals()
    found = {"ok": not breaches, "breaches": [breach._asdict() for breach in breaches], **sums._asdict()}
    return found if unsealed is None else {**found, "unsealed": unsealed}


async def accept_rows(place: LedgerPlace) -> dict[str, Any]:
    """Accept every row as it is now, after a person has checked them: `check` no longer reports what it found."""
    async with _opened(place) as ledger:
        rewritten = await ledger.file.find_rewritten()
        await ledger.file.accept_rows()
    log.warning("rows that others wrote were accepted", extra={"found": rewritten})
    return {"accepted": rewritten}


async def grant(
    place: LedgerPlace, who: str, credits: int, reason: str, once: str | None = None, *, clock: Clock | None = None
) -> dict[str, Any]:
    """Grant credits to a token by its fingerprint, or to a new token (`who` is `new`), which is shown only this once.

    The books and the buyer's statement name the reason. With `once`, such as the hash of a
    transaction, the grant is made once, however often the command is repeated. Raises
    PaymentRequired: invalid_token; CauseReused.
    """
    name = f"grant:{once or secrets.token_hex(8)}:"
    token = f"svc_live_{secrets.token_hex(32)}" if who == "new" else None
    async with _opened(place, clock) as ledger:
        cause = await ledger.find_cause(name) or f"{name}{reason}"
        if token is not None:
            done = await ledger.mint(token, credits, cause=cause)
        else:
            done = await ledger.mint((await ledger.standing_of_fingerprint(who)).ref, credits, cause=cause)
    log.warning("credits were granted", extra={"who": who, "credits": credits, "cause": cause})
    shown = {"granted": done.credits, "remaining": done.remaining, "cause": cause, "replayed": done.replayed}
    return shown if token is None else {"token": token, **shown}


async def revoke(place: LedgerPlace, fingerprint: str, reason: str, *, clock: Clock | None = None) -> dict[str, Any]:
    """Invalidate a token for good. Raises PaymentRequired: invalid_token."""
    async with _opened(place, clock) as ledger:
        return {"revoked": await ledger.revoke(fingerprint, reason)}


def backup(data_dir: Path, to: Path | None = None) -> dict[str, Any]:
    """Copy the ledger, even while it is in use, and check the copy. Raises BackupFailed."""
    to = to or data_dir / "backups" / f"ledger-{stamp()}.sqlite3"
    return {"backup": str(to), "bytes": back_up(data_dir / FILE, to, problems=find_problems)}


def restore_backup(data_dir: Path, backup: Path) -> dict[str, Any]:
    """Replace the ledger with a backup, and keep the old file beside it. Raises BackupFailed, DatabaseInUse."""
    aside = restore(data_dir / FILE, backup, problems=find_problems)
    note_restored(data_dir / FILE)
    return {"restored": str(data_dir / FILE), "kept": str(aside) if aside else None}


def _time(seconds: float) -> str:
    return iso(datetime.fromtimestamp(seconds, UTC))
