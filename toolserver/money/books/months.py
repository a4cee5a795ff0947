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
from typing import Any, NamedTuple

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
from toolserver.sql.sealed_file import data_version

log = logging.getLogger(__name__)

SETTLED_MS = 24 * 3_600_000  # how long to wait after the end of a month: no instance's clock is that wrong
PROMISED_MS = 90 * DAY_MS  # how long the receipt of a call is kept
GROUP_S = 0.01  # target time for the work of a group, during which sales wait
SIZES = (64, 2048)  # minimum and maximum rows in a group: the fixed work per group takes some milliseconds too
# Pauses after a group, as a multiple of its time. A service that waits for a file checks only from time to time whether
# it may write. On a server, a sale waits only for the rows of an account. And a file is ours alone if nobody else has
# written anything for so many groups in a row: a service that waits gives up sooner.
REST, SHORT_REST = 4, 1
ALONE = 32

Step = Callable[[SqlConnection, Any, int, int], RemovalStep]


class Removal(NamedTuple):
    """A way to remove rows in groups, and whether sales on a server wait for a group, because it locks accounts."""

    step: Step
    delays_sales: bool = False


_REMOVALS: dict[str, tuple[Removal, ...]] = {
    # first: the month of a receipt is the one to be asked for
    "receipts": (Removal(remove_receipts), Removal(remove_whole_receipts)),
    "calls": (Removal(remove_calls, delays_sales=True),),
    "uncharged": (Removal(remove_uncharged),),
}


@dataclass(slots=True)
class RemovalPace:
    """The size of groups, and the pauses after them, so that a service can work meanwhile.

    The size follows the time of a group's work without its commit. On a disk that syncs slowly, groups sized by the
    whole time would be the smallest, with the most syncs.
    """

    delays_sales: bool
    size: int  # rows in the next group
    version: int | None = None  # of the file, when the last group began
    quiet: int = 0  # groups in a row before which nobody else wrote

    @classmethod
    def of(cls, removal: Removal, is_file: bool) -> "RemovalPace":
        """Return the pace at which a removal begins. Where no sale waits for a group, all groups are large."""
        delays_sales = is_file or removal.delays_sales
        return cls(delays_sales, SIZES[0] if delays_sales else SIZES[1])

    def follow(self, worked: float, took: float, version: int | None) -> float:
        """Set the size of the next group, and return how many seconds to pause before it.

        A group worked and took so many seconds, without and with its commit. `version` is that of its file, which
        changes when others write, and None on a server.
        """
        if self.delays_sales:
            self.size = min(max(self.size // 2 if worked > GROUP_S else self.size * 2, SIZES[0]), SIZES[1])
        if version is None:
            return SHORT_REST * took
        self.quiet = self.quiet + 1 if version == self.version else 0
        self.version = version
        return (SHORT_REST if self.quiet >= ALONE else REST) * took


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
            removed = RowRemoval(transact, horizon, isinstance(self.place, Path)).remove_all()
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


class _RemovedGroup(NamedTuple):
    """What the transaction of a group did, the seconds until its commit, and the version of its file, if it is one."""

    step: RemovalStep
    worked: float
    version: int | None


@dataclass(frozen=True, slots=True)
class RowRemoval:
    """Removes what is older than a horizon (epoch ms; 0: nothing was released), group by group.

    A killed one is continued by the next: each group is one transaction, and the next one begins at the oldest rows.
    """

    transact: Transact
    horizon: int
    is_file: bool
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def remove_all(self) -> dict[str, int]:
        """Return how many rows of each kind were removed. Raises StorageFailed."""
        self._remove(Removal(move_old_names))
        return {name: sum(map(self._remove, removals)) for name, removals in _REMOVALS.items()}

    def _remove(self, removal: Removal) -> int:
        after: int | bytes | None = 0 if self.horizon else None
        pace, removed = RemovalPace.of(removal, self.is_file), 0
        while after is not None:
            began = self.monotonic()
            group = self.transact(partial(self._remove_group, removal.step, after, pace.size))
            after = group.step.last
            removed += group.step.removed
            self.sleep(pace.follow(group.worked, self.monotonic() - began, group.version))
        return removed

    def _remove_group(self, step: Step, after: Any, size: int, db: SqlConnection) -> _RemovedGroup:
        began = self.monotonic()
        version = data_version(db) if self.is_file else None
        done = step(db, after, self.horizon, size)
        return _RemovedGroup(done, self.monotonic() - began, version)
