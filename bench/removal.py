"""`python -m bench.removal [--calls N] [--months N] [--to URL]`: measure how long the calls of old months take to be
removed beside sales, and what of that time a partition for each month would save.

A year of calls is inserted directly, as charges and their receipts leave them (`bench.years`): in a file, or with
`--to` in an empty database or schema. Its first months are marked as released; `bench.archive` measures how months are
closed and proved before. Then their rows are removed as `books prune` does, while a service charges a call every ten
milliseconds.

Partitions would replace the statements that delete rows. Names, sums and seals of what is removed are needed with them
too. So the command prints which share of the time those statements take.
"""

import argparse
import sqlite3
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from functools import partial
from multiprocessing import Event, Process, Queue
from pathlib import Path
from typing import Any

from bench.archive import describe_waits, write_beside
from bench.disk import read_bytes
from bench.shared_ledger import ROW_KEY
from bench.years import YEAR_MS, fill
from toolserver.money.books.months import RowRemoval
from toolserver.money.books.sql_months import DAY_MS
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.month_statement import MonthSpan
from toolserver.sql.connection import SqlConnection, SqlCursor, is_shared
from toolserver.sql.ledger_place import LedgerPlace, open_maintenance
from toolserver.sql.migrate import migrate
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import migrate_server

GROWING = ("transfer", "reservation", "packed_receipt")
QUIET_S = 2.0  # for which charges are measured alone


class StatementTimes:
    """A connection that adds up the seconds of its statements, by their first word."""

    def __init__(self, db: SqlConnection, seconds: dict[str, float]) -> None:
        self._db, self._seconds = db, seconds
        self.shared = is_shared(db)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._db.in_transaction

    def execute(self, sql: str, parameters: Any = (), /) -> SqlCursor:
        """Run a statement and note how long it took."""
        began = time.perf_counter()
        try:
            return self._db.execute(sql, parameters)
        finally:
            self._seconds[sql.split(maxsplit=1)[0]] += time.perf_counter() - began


def release_months(db: Any, until: int) -> None:
    """Mark everything before a time as archived, without an archive."""
    row = (MonthSpan.at(until - 1).name, until, 0, "", until, until)
    db.execute(
        "INSERT INTO closed_month(month, until, transfers, statement, closed_at, released_at) VALUES(?,?,?,?,?,?)", row
    )


def make(place: LedgerPlace, calls: int, since: int, until: int) -> None:
    """Make a ledger with a year of calls, of which those before `until` may be removed."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place, isolation_level=None)) as db:
            db.create_function("unhexed", 1, bytes.fromhex, deterministic=True)
            db.execute("PRAGMA synchronous=OFF")
            migrate(db)
            db.execute("BEGIN")
            fill(db, calls, 1, since)
            release_months(db, until)
            db.execute("COMMIT")
        return
    with closing(PostgresConnection(place)) as server:
        migrate_server(server)
        server.run_script("SET statement_timeout = 0")
        fill(server, calls, 1, since)
        release_months(server, until)
        server.run_script("VACUUM ANALYZE")


def remove(place: LedgerPlace, horizon: int) -> tuple[float, dict[str, float]]:
    """Remove what is older than the horizon. Returns the seconds in transactions, and those of statements."""
    seconds, inside, groups, longest = defaultdict[str, float](float), 0.0, 0, 0.0
    with open_maintenance(place) as transact:

        def measured(job: Any) -> Any:
            nonlocal inside, groups, longest
            began = time.perf_counter()
            done = transact(lambda db: job(StatementTimes(db, seconds)))
            took = time.perf_counter() - began
            inside, groups, longest = inside + took, groups + 1, max(longest, took)
            return done

        rows = RowRemoval(measured, horizon, isinstance(place, Path)).remove_all()
    print(f"removed {rows} in {groups} groups, the longest took {longest * 1e3:.0f} ms", flush=True)
    return inside, seconds


def print_waits(title: str, place: LedgerPlace, job: Any) -> Any:
    """Run a job beside a service that charges, and print how long its charges took."""
    over = Event()
    times: Queue[list[float]] = Queue()
    writer = Process(target=write_beside, args=(place, over, times))
    writer.start()
    times.get()  # it has opened the ledger
    try:
        return job()
    finally:
        over.set()
        took = times.get(timeout=60)
        writer.join()
        print(f"{title}: {describe_waits(took)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.removal")
    parser.add_argument("--calls", type=int, default=1_000_000, help="Calls of the year")
    parser.add_argument("--months", type=int, default=1, help="How many of its twelve months are removed")
    parser.add_argument("--to", metavar="URL", help="An empty database or schema, instead of a file")
    chosen = parser.parse_args()
    since = int(time.time() * 1000) - YEAR_MS - 100 * DAY_MS
    until = since + YEAR_MS * chosen.months // 12
    with tempfile.TemporaryDirectory(prefix="toolserver-removal-") as name:
        place: LedgerPlace = Path(name) / FILE
        if chosen.to:
            place = PostgresTerms(chosen.to, connect_s=15, work_s=600, readers=1, row_key=ROW_KEY)
        make(place, chosen.calls, since, until)
        before = read_bytes(place)
        print_waits("before", place, partial(time.sleep, QUIET_S))
        began = time.perf_counter()
        inside, seconds = print_waits("meanwhile", place, partial(remove, place, until))
        took, gone = time.perf_counter() - began, chosen.calls * chosen.months // 12
        print(f"{gone} calls in {took:.1f} s, {took / gone * 1e6:.0f} s a million; {inside / took:.0%} in transactions")
        print(f"of their time, statements that delete rows took {seconds['DELETE'] / inside:.0%}", flush=True)
        after = read_bytes(place)
        for table in GROWING:
            print(f"  {table:16} {before[table] / 1e6:8.1f} MB before, {after[table] / 1e6:8.1f} MB after")


if __name__ == "__main__":
    main()
