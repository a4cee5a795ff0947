"""Move the ledger of a PostgreSQL database to the file of a data directory (`toolserver db move --to-file`).

    mark the folder → mark the database → copy one snapshot → compare both → rename the file → mark the database as left

Each step may be the last before a kill; the same command then continues. The file has its name
only when it is complete and compared, and the folder serves it only after the last step.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.quotes import ADDRESS_MARK
from toolserver.serving.database_check import find_differences, read_facts
from toolserver.serving.database_move import Report
from toolserver.serving.money import MARKER
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import OtherWorld
from toolserver.sql.high_water import HighWater, SharedMarks, find_later
from toolserver.sql.move_mark import COPYING, RETURNING, MoveMark, forget_move, read_move, write_move
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_move import MoveRefused
from toolserver.sql.postgres_return import ReturnSource, open_return, read_first_address, write_file
from toolserver.sql.seal_marks import MARK as ROWS
from toolserver.sql.seal_marks import SERVER_MARK

UNFINISHED = f"{FILE}.returning"


def return_database(data_dir: Path, terms: PostgresTerms, report: Report = lambda done, rows: None) -> dict[str, Any]:
    """Move the ledger of a database to a file, or resume that, and return what was moved and compared.

    Raises:
        MoveRefused: the data directory has a ledger, a service uses the database, or the copy differs.
        OtherWorld, NewerDatabase, ForeignDatabase, MigrationChanged, LedgerMoved, MarksBroken, StorageFailed
    """
    began, before = time.monotonic(), read_move(data_dir)
    if before is not None and before.state == COPYING:
        raise MoveRefused(f"the ledger of {data_dir} is being moved to {before.to}: finish or cancel that first")
    is_resumed = before is not None and before.state == RETURNING
    if not is_resumed and (data_dir / FILE).exists():
        raise MoveRefused(f"{data_dir / FILE} has a ledger: name another data directory")
    mark = before if before is not None and is_resumed else MoveMark.begin_return(terms.url)
    with open_return(terms) as source:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_move(data_dir, mark)
        if not source.is_left(mark):
            try:
                source.begin(mark, simulated=(data_dir / MARKER).exists())
            except (MoveRefused, OtherWorld):
                if not is_resumed:
                    forget_move(data_dir) if before is None else write_move(data_dir, before)
                raise
        if not (data_dir / FILE).exists():  # else it was killed after the file was complete
            _copy(source, data_dir, terms, report)
        with source.snapshot() as db:
            facts = read_facts(db)
        source.finish(mark)
    forget_move(data_dir)
    return {
        "moved_from": mark.to,
        "moved_to": str(data_dir / FILE),
        "resumed": is_resumed,
        "seconds": round(time.monotonic() - began, 1),
        **facts.describe(),
        "engine": "SQLite",
    }


def cancel_return(data_dir: Path, terms: PostgresTerms) -> dict[str, Any]:
    """Allow the database to be served again. Raises MoveRefused if no move from it to the data directory has begun."""
    mark = read_move(data_dir)
    if mark is None or mark.state != RETURNING:
        raise MoveRefused(f"no move of a ledger to {data_dir} has begun")
    with open_return(terms) as source:
        if source.is_left(mark):
            raise MoveRefused(f"the ledger of {mark.to} was moved to {data_dir} and is served from there")
        source.cancel(mark)
    for name in (FILE, UNFINISHED):
        (data_dir / name).unlink(missing_ok=True)
    forget_move(data_dir)
    return {"cancelled": mark.to}


def _copy(source: ReturnSource, data_dir: Path, terms: PostgresTerms, report: Report) -> None:
    """Copy and compare one snapshot, raise the marks of the data directory, and give the file its name."""
    path = data_dir / UNFINISHED
    with source.snapshot() as db:
        write_file(db, path, lambda name, rows: report("copied", rows), partial(_compare, db, report))
        address = read_first_address(db)
    marks = HighWater(data_dir)
    for name, value in SharedMarks(data_dir, terms).read_all().items():
        if name not in (ROWS, SERVER_MARK):
            marks.change(name, partial(find_later, value))
    marks.raise_to(ADDRESS_MARK, address)
    path.rename(data_dir / FILE)


def _compare(db: SqlConnection, report: Report, file: SqlConnection) -> None:
    """Raise MoveRefused if the facts of both differ."""
    facts = read_facts(db, lambda name, rows: report("compared", rows))
    copy = read_facts(file, lambda name, rows: report("compared", rows))
    if differences := list(find_differences(facts, copy)):
        raise MoveRefused(f"the copy differs from the ledger and is not served: {'; '.join(differences[:5])}")
