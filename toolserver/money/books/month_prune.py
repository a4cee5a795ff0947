"""Remove rows of calls in old closed months from the database, once their archives prove them (`books prune`).

    archive verified → its rows compared with the database's → month released → groups of rows removed

The tables' triggers refuse every other deletion. A release is one row. Each group is removed in one transaction, which
also stores its sums. So the next run continues where a killed one stopped, and the ledger is consistent in between.
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
from toolserver.money.books.month_archive import encode_row, name_archive
from toolserver.money.books.month_proof import prove_month
from toolserver.money.books.sql_month_rows import read_rows
from toolserver.money.books.sql_months import ClosedMonth, MonthRefused, list_closed, release_month
from toolserver.money.books.sql_removal import (
    DAY_MS,
    RemovalStep,
    remove_calls,
    remove_receipts,
    remove_uncharged,
)
from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.month_statement import MonthSpan, RowDigest
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, read_place
from toolserver.sql.maintenance import Transact, open_maintenance

log = logging.getLogger(__name__)

PROMISED_MS = 90 * DAY_MS  # how long the receipt of a call is kept
GROUP_S = 0.01  # target time for a group of rows, during which a service that writes to the same file waits
SIZES = (64, 512)  # minimum and maximum rows in a group: the fixed work per group takes some milliseconds too
REST, REST_OF_SERVER = 4, 1  # pause after a group, as a multiple of its time. A service that waits for a file checks
# only from time to time whether it may write; on a server, it waits only for the rows of an account.
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
        """Remove calls older than this many whole months and 90 days. Returns what was released and removed.

        `now` is in epoch milliseconds. Raises MonthRefused, ArchiveBroken, StorageFailed, FileNotFoundError.
        """
        oldest = _find_oldest(keep_months, now)
        with hold_folder(self.folder), open_maintenance(self.place) as transact:
            months: list[ClosedMonth] = read_place(self.place, list_closed)
            due = [each for each in months if each.until <= oldest and each.released_at is None]
            for closed in due:
                self._require_archived(closed)
                transact(partial(_release, closed.month, now))
                log.warning("removing the rows of a month, which its archive contains", extra={"month": closed.month})
            horizon = transact(read_horizon)
            rest = REST if isinstance(self.place, Path) else REST_OF_SERVER
            removed = {name: sum(_walk(transact, step, horizon, rest)) for name, step in _STEPS.items()}
        before = MonthSpan.at(horizon).name if horizon else None
        return {"released": [closed.month for closed in due], "before": before, "rows": removed}

    def _require_archived(self, closed: ClosedMonth) -> None:
        """Raise MonthRefused if the archive does not prove the month, or if the database has different rows."""
        facts = prove_month(name_archive(self.folder, closed.month), self.ring.find)
        if facts.problems or facts.signed.text != closed.statement:
            reason = facts.problems[0] if facts.problems else "it belongs to another statement"
            raise MonthRefused(f"the rows of {closed.month} are kept: its archive does not prove them: {reason}")
        span = MonthSpan.named(closed.month)
        for table in _COMPARED:
            found = read_place(self.place, partial(_sum_up, table, span))
            if found != facts.signed.statement.tables[table]:
                raise MonthRefused(f"the rows of {closed.month} are kept: those of {table} differ from its archive")


def _find_oldest(keep_months: int, now: int) -> int:
    """Return the time before which rows need not be kept."""
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
    """Yield the number of rows in each group until none are left. A group is as large as a service can wait for."""
    after: int | None = 0 if horizon else None
    size = SIZES[0]
    while after is not None:
        began = time.monotonic()
        after, removed = transact(partial(_take_step, step, after, horizon, size))
        took = time.monotonic() - began
        yield removed
        size = min(max(size // 2 if took > GROUP_S else size * 2, SIZES[0]), SIZES[1])
        time.sleep(rest * took)
