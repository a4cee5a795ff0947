"""Close months (`toolserver books close`), and remove their calls later (`books prune`).

Closing writes an ended month (UTC) to its archive, signs it, reads it back and stores it as closed:

    rows of one snapshot → draft archive → signed statement → draft read back and verified → renamed → `closed_month`

If a run is killed at any moment, the next run starts the month again: until its row is
stored, an archive is a draft. Closing removes nothing. Pruning removes rows of calls in old
closed months, once their archives prove them:

    archive verified → its rows compared with the database's → month released → groups of rows removed

The tables' triggers refuse every other deletion. A release is one row. Each group is removed
in one transaction, which also stores its sums. So the next run continues where a killed one
stopped, and the ledger is consistent in between.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from toolserver.core.private_file import hold_folder, sync_folder
from toolserver.money.books.month_archive import name_archive, open_draft
from toolserver.money.books.month_proof import MonthFacts, prove_month
from toolserver.money.books.sql_books import read_usdc
from toolserver.money.books.sql_months import (
    DAY_MS,
    TABLES,
    ClosedMonth,
    MonthRefused,
    RemovalStep,
    columns_of,
    find_different_tables,
    list_closed,
    move_old_names,
    read_figures,
    read_first_month,
    read_log_root,
    read_moved_money,
    read_rows,
    read_seal_head,
    release_month,
    remove_calls,
    remove_receipts,
    remove_uncharged,
    remove_whole_receipts,
    store_closed,
)
from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.month_statement import MonthSpan, MonthStatement, SignedMonth, parse_month
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, Transact, open_maintenance, open_place, read_place

log = logging.getLogger(__name__)

SETTLED_MS = 24 * 3_600_000  # how long to wait after the end of a month: no instance's clock is that wrong
PROMISED_MS = 90 * DAY_MS  # how long the receipt of a call is kept
GROUP_S = 0.01  # target time for a group of rows, during which a service that writes to the same file waits
SIZES = (64, 512)  # minimum and maximum rows in a group: the fixed work per group takes some milliseconds too
REST, REST_OF_SERVER = 4, 1  # pause after a group, as a multiple of its time. A service that waits for a file checks
# only from time to time whether it may write; on a server, it waits only for the rows of an account.

Step = Callable[[SqlConnection, Any, int, int], RemovalStep]
_STEPS: dict[str, tuple[Step, ...]] = {
    "receipts": (remove_receipts, remove_whole_receipts),  # first: the month of a receipt is the one to be asked for
    "calls": (remove_calls,),
    "uncharged": (remove_uncharged,),
}


@dataclass(frozen=True, slots=True)
class MonthCloser:
    """Closes months of one ledger into one folder, on behalf of a service."""

    place: LedgerPlace
    folder: Path
    ring: KeyRing
    service: str

    async def close_until(self, last: MonthSpan | None, now: int) -> list[MonthFacts]:
        """Close every month up to `last` that is not yet closed, in order; by default all that may be closed.

        `now` is in epoch milliseconds. Raises MonthRefused, StorageFailed, ArchiveBroken.
        """
        if last is not None and last.until + SETTLED_MS > now:
            raise MonthRefused(f"{last.name} can be closed a day after its end")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with hold_folder(self.folder):  # so that archives of another closing process are not overwritten
            months, first = read_place(self.place, _read_state)
            closed, before = [], parse_month(months[-1].statement) if months else None
            for span in _list_due(MonthSpan.at(months[-1].until) if months else first, last, now):
                facts = await self.close_month(span, before, now)
                closed.append(facts)
                before = facts.signed
        return closed

    async def close_month(self, span: MonthSpan, before: SignedMonth | None, now: int) -> MonthFacts:
        """Close the month that follows `before`. Raises as `close_until` does."""
        path = name_archive(self.folder, span.name)
        draft = path.with_name(f".{path.name}.draft")
        previous = None if before is None else before.sha256
        read_place(self.place, partial(self._write, draft, span, previous, now))
        facts = prove_month(draft, self.ring.find)
        if facts.problems:
            raise MonthRefused(f"{span.name} is not closed: its rows do not agree: {'; '.join(facts.problems[:5])}")
        draft.replace(path)
        sync_folder(path.parent)
        async with open_place(self.place) as store:
            await store.alone(partial(store_month, facts.signed))
        log.info("a month was closed", extra={"month": span.name, "archive": str(path)})
        return facts

    def _write(self, draft: Path, span: MonthSpan, previous: str | None, now: int, db: SqlConnection) -> None:
        root = read_log_root(db, span)
        if root is None:
            raise MonthRefused(f"the log of uncharged calls lacks hours of {span.name}: start the service first")
        with open_draft(draft) as writer:
            writer.begin(span, self.service)
            for table in TABLES:
                writer.write_table(table, columns_of(table), read_rows(db, table, span))
            statement = MonthStatement(
                v=1,
                service=self.service,
                month=span.name,
                since=span.since,
                until=span.until,
                closed_at=now,
                previous=previous,
                tables=writer.digests,
                credits=read_figures(db, span),
                log=root,
                usdc=read_usdc(db, span.since, span.until),
                seals=read_seal_head(db),
                on_chain=read_moved_money(db, span),
            )
            writer.finish(statement, self.ring.current())


def _read_state(db: SqlConnection) -> tuple[list[ClosedMonth], MonthSpan | None]:
    return list_closed(db), read_first_month(db)


def store_month(signed: SignedMonth, db: SqlConnection) -> None:
    """Store a closed month, within the caller's transaction."""
    store_closed(db, signed)


def _list_due(first: MonthSpan | None, last: MonthSpan | None, now: int) -> Iterator[MonthSpan]:
    """Yield the ended months from the first one up to the last requested one."""
    span = first
    while span is not None and span.until + SETTLED_MS <= now and (last is None or span.until <= last.until):
        yield span
        span = MonthSpan.at(span.until)


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
            for _ in _walk(transact, move_old_names, horizon, rest):
                pass
            removed = {
                name: sum(sum(_walk(transact, step, horizon, rest)) for step in steps) for name, steps in _STEPS.items()
            }
        before = MonthSpan.at(horizon).name if horizon else None
        rows = {name: removed[name] for name in sorted(removed)}
        return {"released": [closed.month for closed in due], "before": before, "rows": rows}

    def _require_archived(self, closed: ClosedMonth) -> None:
        """Raise MonthRefused if the archive does not prove the month, or if the database has different rows."""
        facts = prove_month(name_archive(self.folder, closed.month), self.ring.find)
        if facts.problems or facts.signed.text != closed.statement:
            reason = facts.problems[0] if facts.problems else "it belongs to another statement"
            raise MonthRefused(f"the rows of {closed.month} are kept: its archive does not prove them: {reason}")
        different: list[str] = read_place(self.place, partial(_list_different, facts.signed.statement))
        if different:
            raise MonthRefused(f"the rows of {closed.month} are kept: those of {different[0]} differ from its archive")


def _find_oldest(keep_months: int, now: int) -> int:
    """Return the time before which rows need not be kept."""
    span = MonthSpan.at(now)
    for _ in range(keep_months):
        span = MonthSpan.at(span.since - 1)
    return min(span.since, now - PROMISED_MS)


def _list_different(statement: MonthStatement, db: SqlConnection) -> list[str]:
    return list(find_different_tables(db, statement))


def _release(month: str, now: int, db: SqlConnection) -> None:
    release_month(db, month, now)


def _take_step(step: Step, after: Any, horizon: int, size: int, db: SqlConnection) -> RemovalStep:
    return step(db, after, horizon, size)


def _walk(transact: Transact, step: Step, horizon: int, rest: int) -> Iterator[int]:
    """Yield the number of rows in each group until none are left. A group is as large as a service can wait for."""
    after: int | bytes | None = 0 if horizon else None
    size = SIZES[0]
    while after is not None:
        began = time.monotonic()
        after, removed = transact(partial(_take_step, step, after, horizon, size))
        took = time.monotonic() - began
        yield removed
        size = min(max(size // 2 if took > GROUP_S else size * 2, SIZES[0]), SIZES[1])
        time.sleep(rest * took)
