"""Close months (`toolserver books close`): write an ended month (UTC) to its archive, sign it, read it back, close it.

    rows of one snapshot → draft archive → signed statement → draft read back and verified → renamed → `closed_month`

If a run is killed at any moment, the next run starts the month again: until its row is stored, an archive is a draft.
This module removes nothing (see `month_prune`).
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolserver.core.private_file import hold_folder, sync_folder
from toolserver.money.books.month_archive import name_archive, open_draft
from toolserver.money.books.month_proof import MonthFacts, prove_month
from toolserver.money.books.sql_month_rows import (
    TABLES,
    columns_of,
    read_figures,
    read_first_month,
    read_log_root,
    read_rows,
)
from toolserver.money.books.sql_months import ClosedMonth, MonthRefused, list_closed, store_closed
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.month_statement import MonthSpan, MonthStatement, SignedMonth, parse_month
from toolserver.sql.connection import SqlConnection
from toolserver.sql.ledger_place import LedgerPlace, open_place, read_place

log = logging.getLogger(__name__)

SETTLED_MS = 24 * 3_600_000  # how long to wait after the end of a month: no instance's clock is that wrong


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
            found, before = [], parse_month(months[-1].statement) if months else None
            for span in _list_due(MonthSpan.at(months[-1].until) if months else first, last, now):
                facts = await self._close(span, before, now)
                found.append(facts)
                before = facts.signed
        return found

    async def _close(self, span: MonthSpan, before: SignedMonth | None, now: int) -> MonthFacts:
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
            await store.alone(partial(_store, facts.signed))
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
            figures = read_figures(db, span)
            about = (self.service, span.name, span.since, span.until, now, previous)
            writer.finish(MonthStatement(1, *about, writer.digests, figures, root), self.ring.current())


def _read_state(db: SqlConnection) -> tuple[list[ClosedMonth], MonthSpan | None]:
    return list_closed(db), read_first_month(db)


def _store(signed: SignedMonth, db: SqlConnection) -> None:
    store_closed(db, signed)


def _list_due(first: MonthSpan | None, last: MonthSpan | None, now: int) -> Iterator[MonthSpan]:
    """Yield the ended months from the first one up to the last requested one."""
    span = first
    while span is not None and span.until + SETTLED_MS <= now and (last is None or span.until <= last.until):
        yield span
        span = MonthSpan.at(span.until)
