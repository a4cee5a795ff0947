"""`toolserver books prune`: rows of calls in old closed months leave the database, once their archives proved them.

    archive proved → its rows compared with the database's → month released → groups of rows removed

The triggers of the tables refuse every other deletion. A release is one row; each group is one transaction with what
it came to. So a run that is killed at any moment is gone on with by the next one, and the ledger is right in between.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from toolserver.core.private_file import hold_folder
from toolserver.ledger.sqlite_removed import read_horizon
from toolserver.receipts.keys import KeyRing
from toolserver.receipts.month_statement import MonthSpan, RowDigest
from toolserver.server.month_archive import encode_row, name_archive
from toolserver.server.month_proof import prove_month
from toolserver.server.sqlite_month_rows import read_rows
from toolserver.server.sqlite_months import ClosedMonth, MonthRefused, list_closed, release_month
from toolserver.server.sqlite_removal import (
    DAY_MS,
    RemovalStep,
    remove_calls,
    remove_receipts,
    remove_uncharged,
)
from toolserver.storage.connection import SqlConnection
from toolserver.storage.ledger_place import LedgerPlace, read_place
from toolserver.storage.maintenance import Transact, open_maintenance

log = logging.getLogger(__name__)

PROMISED_MS = 90 * DAY_MS  # for so long after a call its receipt is there
GROUP_S = 0.01  # a group of rows takes about so long: a service that writes to the same file waits meanwhile
SIZES = (64, 512)  # rows in a group, at least and at most: what is done once for each group takes some milliseconds too
REST, REST_OF_SERVER = 4, 1  # and then a service has so many times as long for itself. Who waits for a file looks only
# now and then whether it may write; on a server it waits for the rows of an account alone.
_COMPARED = ("transfer", "receipt", "uncharged_call")  # a reservation may have moved on since, by a transfer

Step = Callable[[SqlConnection, int, int, int], RemovalStep]
_STEPS: dict[str, Step] = {"calls": remove_calls, "receipts": remove_receipts, "uncharged": remove_uncharged}


@dataclass(frozen=True, slots=True)
class MonthPruner:
    """Removes the rows of old closed months of one ledger, whose archives are in a folder."""

    place: LedgerPlace
    folder: Path
    ring: KeyRing

    def prune(self, keep_months: int, now: int) -> dict[str, Any]:
        """Remove what is older than so many whole months, and than 90 days. Returns what was released and removed.

        `now` is in epoch milliseconds. Raises MonthRefused, ArchiveBroken, StorageFailed, FileNotFoundError.
        """
        oldest = _find_oldest(keep_months, now)
        with hold_folder(self.folder), open_maintenance(self.place) as transact:
            months: list[ClosedMonth] = read_place(self.place, list_closed)
            due = [each for each in months if each.until <= oldest and each.released_at is None]
            for closed in due:
                self._require_archived(closed)
                transact(partial(_release, closed.month, now))
                log.warning("the rows of a month are removed, its archive has them", extra={"month": closed.month})
            horizon = transact(read_horizon)
            rest = REST if isinstance(self.place, Path) else REST_OF_SERVER
            removed = {name: sum(_walk(transact, step, horizon, rest)) for name, step in _STEPS.items()}
        before = MonthSpan.at(horizon).name if horizon else None
        return {"released": [closed.month for closed in due], "before": before, "rows": removed}

    def _require_archived(self, closed: ClosedMonth) -> None:
        """Raises MonthRefused where the archive does not prove the month, or the database has other rows."""
        facts = prove_month(name_archive(self.folder, closed.month), self.ring.find)
        if facts.problems or facts.signed.text != closed.statement:
            reason = facts.problems[0] if facts.problems else "it is the archive of another statement"
            raise MonthRefused(f"the rows of {closed.month} stay, its archive does not prove them: {reason}")
        span = MonthSpan.named(closed.month)
        for table in _COMPARED:
            found = read_place(self.place, partial(_sum_up, table, span))
            if found != facts.signed.statement.tables[table]:
                raise MonthRefused(f"the rows of {closed.month} stay: those of {table} are not its archive's")


def _find_oldest(keep_months: int, now: int) -> int:
    """The time before which rows need not be kept."""
    span = MonthSpan.at(now)
    for _ in range(keep_months):
        span = MonthSpan.at(span.since - 1)
    return min(span.since, now - PROMISED_MS)


def _sum_up(table: str, span: MonthSpan, db: SqlConnection) -> RowDigest:
    digest, rows = sha256(), 0
    for row in read_rows(db, table, span):
        digest.update(encode_row(row))
        rows += 1
    return RowDigest(rows, digest.hexdigest())


def _release(month: str, now: int, db: SqlConnection) -> None:
    release_month(db, month, now)


def _take_step(step: Step, after: int, horizon: int, size: int, db: SqlConnection) -> RemovalStep:
    return step(db, after, horizon, size)


def _walk(transact: Transact, step: Step, horizon: int, rest: int) -> Iterator[int]:
    """The rows that each group had, until no other is to come. Groups are as large as a service can wait for."""
    after: int | None = 0 if horizon else None
    size = SIZES[0]
    while after is not None:
        began = time.monotonic()
        after, removed = transact(partial(_take_step, step, after, horizon, size))
        took = time.monotonic() - began
        yield removed
        size = min(max(size // 2 if took > GROUP_S else size * 2, SIZES[0]), SIZES[1])
        time.sleep(rest * took)
