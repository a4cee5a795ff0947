"""Move a data directory's ledger to PostgreSQL (`toolserver db move`), complete and compared, even if interrupted.

    check the file → mark the folder → copy table by table → set the sequences → compare both → serve the database

Once the folder is marked, the file is no longer served until the move is complete or
cancelled.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from toolserver.money.ledger.admin import check
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.quotes import ADDRESS_MARK as ADDRESS
from toolserver.serving.database_check import DatabaseFacts, find_differences, read_facts
from toolserver.serving.money import MARKER
from toolserver.sql.backup import require_alone, stamp
from toolserver.sql.errors import OtherWorld
from toolserver.sql.high_water import HighWater
from toolserver.sql.kept_tables import list_kept_tables
from toolserver.sql.move_mark import COMPLETE, COPYING, RETURNING, MoveMark, forget_move, read_move, write_move
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_move import MoveRefused, MoveTarget, count_sealed, open_source, open_target
from toolserver.sql.row_seal import WriterSeal, read_heads
from toolserver.sql.seal_marks import MARK as ROWS
from toolserver.sql.seal_marks import SERVER_MARK, find_mark, note_seals

log = logging.getLogger(__name__)

Report = Callable[[str, int], None]
"""Called with what was done (`copied`, `compared`) and to how many further rows."""


def move_database(data_dir: Path, terms: PostgresTerms, report: Report = lambda done, rows: None) -> dict[str, Any]:
    """Move the ledger of a data directory, or resume the move, and return what was moved and compared.

    Raises:
        MoveRefused: there is nothing to move, the file is not sound, or the database is not empty.
        DatabaseInUse: a service runs on the data directory.
        OtherWorld, NewerDatabase, ForeignDatabase, MigrationChanged, LedgerMoved, MarksBroken, StorageFailed
    """
    began, path = time.monotonic(), data_dir / FILE
    interrupted = _check_source(data_dir, path)
    with open_source(path) as source, open_target(terms) as target:
        mark = MoveMark.begin(terms.url) if interrupted is None else interrupted.go_to(terms.url)
        write_move(data_dir, mark)
        try:
            state = target.begin(mark, count_sealed(source), simulated=(data_dir / MARKER).exists())
        except (MoveRefused, OtherWorld):
            if interrupted is None:
                forget_move(data_dir)
            raise
        before = target.count_copied()
        if state == COPYING:
            for table in list_kept_tables():
                target.copy(table, source, lambda name, rows: report("copied", rows))
            marks = HighWater(data_dir).read_all()
            target.set_counters(marks.get(ADDRESS) or 0)
            target.set_marks({name: value for name, value in marks.items() if name not in (ROWS, SERVER_MARK)})
        copied_s, copied = time.monotonic() - began, target.count_copied() - before
        compared = time.monotonic()
        facts = _compare(read_facts(source, lambda name, rows: report("compared", rows)), target, report)
        if state == COPYING:
            target.finish()
            seals: list[WriterSeal] = target.read(read_heads)
            if seals:  # an earlier mark is of another database
                note_seals(HighWater(data_dir), find_mark(seals), name=SERVER_MARK, lower=True)
    aside = _leave(data_dir, path, mark)
    log.warning("the ledger was moved", extra={"to": mark.to, "rows": sum(each.rows for each in facts.tables.values())})
    return {
        "moved_to": mark.to,
        "resumed": interrupted is not None,
        "copied": copied,
        "copied_per_second": round(copied / max(copied_s, 0.001)),
        "compared_s": round(time.monotonic() - compared, 1),
        "seconds": round(time.monotonic() - began, 1),
        "kept": str(aside),
        **facts.describe(),
    }


def cancel_move(data_dir: Path) -> dict[str, Any]:
    """Allow the file of a data directory to be served again. Raises MoveRefused if that is not allowed."""
    mark = read_move(data_dir)
    if mark is None:
        raise MoveRefused(f"no move of the ledger of {data_dir} has begun")
    if mark.state == RETURNING:
        raise MoveRefused(f"a ledger is being moved from {mark.to} to {data_dir}: add --to-file to cancel that")
    if mark.state == COMPLETE:
        raise MoveRefused(f"the ledger of {data_dir} was moved to {mark.to} and is served from there")
    forget_move(data_dir)
    return {"cancelled": mark.to, "left": f"the rows copied to {mark.to}: remove them before another move to it"}


def _check_source(data_dir: Path, path: Path) -> MoveMark | None:
    """Check that the file can be moved. Returns the interrupted move, if there is one: the file was checked then."""
    mark = read_move(data_dir)
    if mark is not None and mark.state == RETURNING:
        raise MoveRefused(f"a ledger is being moved from {mark.to} to {data_dir}: finish or cancel that first")
    if mark is not None and mark.state == COMPLETE:
        raise MoveRefused(f"the ledger of {data_dir} was already moved to {mark.to}")
    if not path.exists():
        raise MoveRefused(f"there is no ledger in {data_dir}")
    require_alone(path)
    if mark is None:
        verdict = anyio.run(check, path)  # also migrates it
        broken = [f"{breach['rule']}: {breach['where']}" for breach in verdict["breaches"] if not _is_late(breach)]
        if broken:
            raise MoveRefused(f"the ledger of {data_dir} is not sound, so it is not moved: {'; '.join(broken[:5])}")
        require_alone(path)
    return mark


def _is_late(breach: dict[str, str]) -> bool:
    """Return True if a breach means only that expired reservations are not swept yet. The next service does that."""
    return breach["rule"] == "no reservation is open past its time"


def _compare(facts: DatabaseFacts, target: MoveTarget, report: Report) -> DatabaseFacts:
    """Read the copy and return its facts. Raises MoveRefused if they differ from those of the file."""
    copy: DatabaseFacts = target.read(lambda there: read_facts(there, lambda name, rows: report("compared", rows)))
    if differences := list(find_differences(facts, copy)):
        raise MoveRefused(f"the copy differs from the ledger and is not served: {'; '.join(differences[:5])}")
    return copy


def _leave(data_dir: Path, path: Path, mark: MoveMark) -> Path:
    """Record in the data directory where the ledger is now, and rename the file. Returns its new name."""
    write_move(data_dir, mark.complete())
    aside = path.with_name(f"{path.name}.moved-{stamp()}")
    path.rename(aside)
    return aside
