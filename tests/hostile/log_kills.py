"""`python -m tests.hostile.log_kills`: kills the task that appends closed hours to the log, at each of its steps.

A process of its own closes two hours and is killed at a step. Another one goes on. Then each hour stands in the log
once, the checkpoint is that of its leaves, and the log begins with all that was signed before.
"""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.live.forking import start_program
from tests.live.processes import ROOT, environment
from toolserver.clock import ManualClock
from toolserver.money.books.sql_reconciliation import find_log_differences
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.receipts import sql_store
from toolserver.money.receipts.log import HOUR_S, UnchargedCall
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.receipts.transparency_log import LEASE_S, MARK, read_mark
from toolserver.sql.high_water import HighWater

START = datetime(2027, 1, 15, 8, tzinfo=UTC).timestamp()
URL = "https://data.example"
# A step: what is called then, how often it has to be called, and whether the kill comes before or after it.
STEPS: dict[str, tuple[Any, str, int, bool]] = {
    "before an hour is appended": (SqlReceiptStore, "append", 1, True),
    "when its leaves are written": (sql_store, "insert", 1, False),
    "when its nodes are written": (sql_store, "insert", 2, False),
    "before it is committed": (sql_store, "append_hour", 1, False),
    "between two hours": (SqlReceiptStore, "append", 1, False),
    "when all are appended": (SqlReceiptStore, "append", 2, False),
    "before the log is signed": (SqlReceiptStore, "sign_checkpoint", 1, True),
    "before the checkpoint is committed": (sql_store, "sign_checkpoint", 1, False),
    "when the checkpoint is stored": (SqlReceiptStore, "sign_checkpoint", 1, False),
    "before it is kept outside the database": (HighWater, "change", 1, True),
    "when it is kept": (HighWater, "change", 1, False),
}


@asynccontextmanager
async def opened(folder: Path, at: float) -> AsyncIterator[tuple[ReceiptService, ManualClock, Any]]:
    """The log of a folder at a time, and the file it stands in."""
    clock = ManualClock(datetime.fromtimestamp(at, UTC))
    async with open_ledger(folder / FILE, clock) as ledger:
        store = SqlReceiptStore(ledger.file)
        yield ReceiptService(store, folder, clock=clock, issuer=Issuer(URL, "data.example")), clock, ledger.file


def kill_at(owner: Any, name: str, calls: int, before: bool) -> None:
    """Let this process die before or after a call of a function, or of a method, of that name."""
    whole, left = getattr(owner, name), itertools.count(calls - 1, -1)

    def is_it(given: tuple[Any, ...]) -> bool:
        return (owner is not HighWater or given[1] == MARK) and next(left) == 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def waited(*given: Any, **named: Any) -> Any:
        now = is_it(given)
        if now and before:
            die()
        found = await whole(*given, **named)
        if now:
            die()
        return found

    def called(*given: Any, **named: Any) -> Any:
        now = is_it(given)
        if now and before:
            die()
        found = whole(*given, **named)
        if now:
            die()
        return found

    setattr(owner, name, waited if asyncio.iscoroutinefunction(whole) else called)


async def close_hours(folder: Path, at: float, step: str) -> None:
    """What the process does that is killed."""
    async with opened(folder, at) as (evidence, _, _):
        kill_at(*STEPS[step])
        await evidence.log.close_hours()


def run_and_kill(folder: Path, at: float, step: str) -> int:
    """The exit status of a process that is killed at a step: -9, if it came there."""
    words = [sys.executable, "-m", "tests.hostile.log_kills", str(folder), str(at), step]
    pipe = subprocess.PIPE
    process = start_program(words, env=environment({}), cwd=ROOT, stdout=pipe, stderr=pipe)
    process.communicate(timeout=60)
    return process.wait()


async def kill_at_step(folder: Path, at: float, step: str) -> AsyncIterator[str]:
    """Book calls of two hours, kill the process that closes them, go on, and describe what is wrong then."""
    from tests.money.receipts.test_merkle import state

    async with opened(folder, at) as (evidence, clock, _):
        before = state((await evidence.log.checkpoint()).note, evidence.log.verifier)
        for hour, owner, call in itertools.product(range(2), range(3), range(2)):
            when = clock.time() + hour * HOUR_S + call
            await evidence.log.record(UnchargedCall(when, f"{owner:064x}", "5xx", f"/api/pro/{owner}", 2))
    later = at + 2 * HOUR_S + 120
    status = await asyncio.to_thread(run_and_kill, folder, later, step)
    if status != -signal.SIGKILL:
        yield f"{step}: the process ended with {status} and was not killed"
    async with opened(folder, later + LEASE_S + 1) as (evidence, _, file):
        early = state((await evidence.log.checkpoint()).note, evidence.log.verifier)
        await evidence.log.close_hours()
        leaves, differences = await file.read(lambda db: read_log(db, read_mark(HighWater(folder))))
        after = state((await evidence.log.checkpoint()).note, evidence.log.verifier)
    for each in differences:
        yield f"{step}: {each}"
    for wrong in check_log(leaves, before, early, after):
        yield f"{step}: {wrong}"


def read_log(db: Any, mark: Any) -> tuple[list[bytes], list[str]]:
    """The leaves of the log, in order, and what the audit of `books check` finds."""
    leaves = [bytes(row[0]) for row in db.execute("SELECT entry FROM no_charge ORDER BY seq")]
    return leaves, list(find_log_differences(db, mark))


def check_log(leaves: list[bytes], *states: tuple[str, int, bytes]) -> Iterator[str]:
    """What is wrong with a log, of which these states were signed, one after the other; the last is that of today."""
    from tests.money.receipts.test_merkle import mth

    buckets = Counter((leaf["hour"], leaf["key"]) for leaf in map(json.loads, leaves))
    hours = Counter(hour for hour, _ in buckets)
    if buckets and set(buckets.values()) != {1}:
        yield "a bucket stands twice"
    if set(hours.values()) != {3}:
        yield f"not every hour has its three buckets: {hours}"
    sizes = [size for _, size, _ in states]
    if sizes != sorted(sizes) or sizes[-1] != len(leaves) or sizes[-1] != sizes[0] + 6:
        yield f"{len(leaves)} leaves, and the signed sizes are {sizes}"
    for _, size, root in states:
        if mth(leaves[:size]) != root:
            yield f"the log does not begin with what was signed of {size} leaves"


async def kill_everywhere(folder: Path, report: Callable[[str], None]) -> list[str]:
    """Kill at every step, one after the other, on one log."""
    wrong = []
    for number, step in enumerate(STEPS):
        found = [each async for each in kill_at_step(folder, START + number * 4 * HOUR_S, step)]
        report(f"{step}: {'wrong' if found else 'right'}")
        wrong += found
    return wrong


def main() -> int:
    if len(sys.argv) == 4:
        folder, at, step = sys.argv[1:]
        asyncio.run(close_hours(Path(folder), float(at), step))
        return 0
    with tempfile.TemporaryDirectory() as place:
        wrong = asyncio.run(kill_everywhere(Path(place), print))
    print("\n".join(wrong) or f"{len(STEPS)} kills: each hour stands once, and the log begins with all that was signed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
