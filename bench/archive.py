"""`python -m bench.archive [--calls N] [--to URL] [--dir DIR]`: measure how long large months take to close, prove and
prune.

A file is written with a month of calls and their receipts (`bench.move`), and with `--to` moved to a server. Its months
are closed, proved from their archives alone, and pruned. During this, another connection writes every ten
milliseconds, as a service does, and notes how long each of its writes took.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import Event, Process, Queue
from multiprocessing.synchronize import Event as Ending
from pathlib import Path
from typing import Any

import anyio

from bench.month import make_month, write_month
from bench.move import FILE, write_evidence
from bench.shared_ledger import ROW_KEY
from toolserver.clock import ManualClock, SystemClock
from toolserver.core.caller import new_call_id
from toolserver.errors import BillingUnavailable
from toolserver.money.books.month_archive import name_archive
from toolserver.money.books.month_proof import prove_months
from toolserver.money.books.months import MonthCloser, MonthPruner
from toolserver.money.ledger.admin import check
from toolserver.money.ledger.store import SqlLedger
from toolserver.money.receipts.keys import RECEIPT_KEYS, KeyRing
from toolserver.serving.database_move import move_database
from toolserver.sql.ledger_place import LedgerPlace, open_place
from toolserver.sql.postgres import PostgresTerms

NOW = 1_812_000_000_000  # a few months after the month of the bench
BUYER = "svc_live_" + "0" * 64


def measure(what: str, job: Callable[[], Any]) -> Any:
    """Run a job and print how long it took."""
    began = time.perf_counter()
    found = job()
    print(f"{what:28} {time.perf_counter() - began:7.1f} s", flush=True)
    return found


def write_beside(place: LedgerPlace, over: Ending, found: "Queue[list[float]]") -> None:
    """Charge a call every ten milliseconds until told to stop, and put the seconds of each charge into the queue.

    An empty list comes first, when the ledger is open. A charge that is refused, because the ledger was held for too
    long, counts as one that took for ever.
    """

    async def write() -> None:
        took: list[float] = []
        async with open_place(place) as store:
            ledger = SqlLedger(store, ManualClock(datetime.fromtimestamp(NOW / 1000, UTC)))
            await ledger.mint(BUYER, 1_000_000, cause="bench")
            found.put([])
            while not over.is_set():
                began = time.perf_counter()
                try:
                    await ledger.charge(new_call_id(), BUYER, 1, endpoint="/api/pro/x")
                    took.append(time.perf_counter() - began)
                except BillingUnavailable:
                    took.append(math.inf)
                await anyio.sleep(0.01)
        found.put(took)

    anyio.run(write)


def describe_waits(took: list[float]) -> str:
    """Return in words how many seconds charges took, and how many were refused."""
    charged = sorted(seconds for seconds in took if seconds < math.inf)
    cuts = [charged[int(len(charged) * part)] for part in (0.5, 0.99, 0.999)]
    shown = ", ".join(f"{seconds * 1e3:.1f} ms" for seconds in (*cuts, charged[-1]))
    refused = len(took) - len(charged)
    return f"{len(charged)} charges, {refused} refused, p50, p99, p99.9 and most: {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.archive")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--buyers", type=int, default=1_000)
    parser.add_argument("--to", metavar="URL", help="An empty database or schema, to which the file is moved first")
    parser.add_argument("--dir", type=Path, help="Folder to leave the ledger in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-archive-") as name:
        folder = given.dir or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        books = make_month(given.calls, given.buyers)
        write_month(books, folder / FILE)
        write_evidence(books, folder / FILE)
        del books
        place: LedgerPlace = folder / FILE
        if given.to:
            place = PostgresTerms(given.to, connect_s=15, work_s=15, readers=1, row_key=ROW_KEY)
            move_database(folder, place)
        run_months(folder, place)


def run_months(folder: Path, place: LedgerPlace) -> None:
    """Close, prove and prune, and print the times."""
    if isinstance(place, Path):
        print(f"the file has {place.stat().st_size / 1e6:.0f} MB")
    ring = KeyRing(folder / RECEIPT_KEYS, SystemClock())
    closer = MonthCloser(place, folder / "archive", ring, "bench")
    closed = measure("close", lambda: anyio.run(closer.close_until, None, NOW))
    paths = [name_archive(closer.folder, facts.signed.statement.month) for facts in closed[:4]]
    print(f"the archives have {sum(path.stat().st_size for path in paths) / 1e6:.0f} MB")
    proved = measure("prove from the archives", lambda: prove_months(paths, ring.find))
    assert all(not facts.problems for facts in proved)
    pruner = MonthPruner(place, closer.folder, ring)
    over = Event()
    times: Queue[list[float]] = Queue()
    writer = Process(target=write_beside, args=(place, over, times))
    writer.start()
    times.get()
    found = measure("prune, beside a writer", lambda: pruner.prune(3, NOW))
    over.set()
    took = times.get(timeout=30)
    writer.join()
    print(f"removed {found['rows']}")
    print(f"meanwhile: {describe_waits(took)}")
    checked = measure("ledger check", lambda: anyio.run(check, place))
    print(f"ok: {checked['ok']} {checked['breaches'][:3]}")


if __name__ == "__main__":
    main()
