"""`python -m tests.hostile.limit_kills [LIVES]`: kills a process at each write of a sale under a cap per day.

A process of its own spends from several callers at once, under a cap that is smaller than what they ask for, and is
killed before or after one of the statements that write a sale, its reservation and the count of the day, or when all is
committed and not answered. Another process goes on. The count is then that of the calls, the cap is not crossed, what
was answered is charged, and a freeze that was answered holds. On SQLite, PostgreSQL, and a ledger that is followed.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.calls.parts import START
from tests.live.forking import start_program
from tests.live.processes import ROOT, environment
from tests.money.ledger.ledgers import FOLLOWED, FOLLOWS
from tests.postgres import WORK_S, url_of
from toolserver.clock import ManualClock
from toolserver.errors import InsufficientCredits
from toolserver.money.ledger.client.ledger import build_ledger_client
from toolserver.money.ledger.operations import LedgerOperation
from toolserver.money.ledger.owner_limits import LimitChange
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import durable

OWNER, CREDITS, CAP = f"svc_live_{1:064x}", 10_000, 40
KINDS = ("sqlite", "postgres", "followed")
CALLERS, WAVES, PATH = 6, 4, "/api/pro/x"
WRITES = ("INSERT", "UPDATE", "DELETE")
ANSWERED = "answered"  # the kill after the commit, before any caller hears of it
MOST_WRITES = 24  # of one life
NOTHING = LimitChange(frozenset())


@dataclass
class Report:
    """What was counted, and everything that is wrong."""

    kills: int = 0
    answered: set[str] = field(default_factory=set)
    spent: int = 0
    freezes: int = 0
    wrong: list[str] = field(default_factory=list)


class MortalConnection:
    """A connection whose process dies before or after one of its writes, counted over the life of the process."""

    def __init__(self, db: SqlConnection, writes: Iterator[int], at: int, before: bool) -> None:
        self._db, self._writes, self._at, self._before = db, writes, at, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        is_last = sql.lstrip().startswith(WRITES) and next(self._writes) == self._at
        if is_last and self._before:
            die()
        cursor = self._db.execute(sql, parameters)
        if is_last:
            die()
        return cursor


class MortalFile:
    """What keeps the rows, of which some group is committed and never answered."""

    def __init__(self, file: GroupCommit, commits: Iterator[int], at: int) -> None:
        self._file, self._commits, self._at = file, commits, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    async def together(self, *given: Any, **named: Any) -> Any:
        outcome = await self._file.together(*given, **named)
        if next(self._commits) == self._at:
            die()
        return outcome


class MortalLedger(SqlLedger):
    """A ledger that ends its process at a write, from the first on, or when an operation is committed.

    `when` is `before` or `after` the write, or `answered`: then `at` counts operations.
    """

    def __init__(self, file: GroupCommit, at: int = 0, when: str = ANSWERED) -> None:
        mortal: Any = MortalFile(file, itertools.count(1), at) if when == ANSWERED else file
        super().__init__(mortal, ManualClock(START))
        self._writes, self._at, self._before = itertools.count(1), 0 if when == ANSWERED else at, when == "before"

    def apply_group(self, db: SqlConnection, operations: Sequence[LedgerOperation[Any]]) -> list[Any]:
        mortal: Any = MortalConnection(db, self._writes, self._at, self._before)
        return super().apply_group(mortal, operations)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@asynccontextmanager
async def opened(kind: str, place: str, *death: Any) -> AsyncIterator[MortalLedger]:
    """The ledger of a folder, or of the database at a URL, which may end this process at a moment."""
    if kind == "postgres":
        async with open_postgres(PostgresTerms(place, connect_s=WORK_S, work_s=WORK_S, readers=1)) as store:
            yield MortalLedger(store, *death)
    else:
        async with durable(Path(place) / FILE) as file:
            yield MortalLedger(file, *death)


@asynccontextmanager
async def seen_by_a_seller(kind: str, place: str, ledger: MortalLedger) -> AsyncIterator[Any]:
    """The ledger as the service sees it that sells: its own, or that of a sister, which is asked over HTTP."""
    if kind != "followed":
        yield ledger
        return
    clock = ManualClock(START)
    transport = httpx.ASGITransport(internal_app(ledger, FOLLOWED, clock))
    async with durable(Path(place) / f"follower-{os.getpid()}.sqlite3") as file:
        follower = build_ledger_client(FOLLOWS, file, clock, transport=transport)
        yield follower
        await follower.owner.aclose()


async def spend_until_killed(kind: str, place: str, at: int, when: str, frozen: bool) -> None:
    """What the process does that is killed: it says each thing that was answered, one a line."""
    async with opened(kind, place, at, when) as ledger:
        async with seen_by_a_seller(kind, place, ledger) as seller:
            if frozen:
                await ledger.change_limits(OWNER, LimitChange(frozenset({"frozen"}), frozen=True))
                print("frozen", flush=True)
            for wave in range(WAVES):
                await asyncio.gather(*(_buy(seller, wave, number) for number in range(CALLERS)))


async def _buy(seller: Any, wave: int, number: int) -> None:
    """One call: charged at once, or reserved and then charged or given back."""
    call, credits = f"call_{os.urandom(16).hex()}", 1 + number % 2
    try:
        if number % 3 == 0:
            await seller.charge(call, OWNER, credits, endpoint=PATH)
        else:
            await seller.reserve(call, OWNER, credits, endpoint=PATH, ttl_s=3600)
            settled = await seller.settle(call, no_charge="5xx" if (wave + number) % 4 == 0 else None)
            if not settled.charged:
                return
    except InsufficientCredits:
        return
    print(call, flush=True)


def live_and_die(kind: str, place: str, at: int, when: str, *, frozen: bool = False) -> tuple[int, list[str]]:
    """One life: its exit status, and what it said."""
    words = [sys.executable, "-m", "tests.hostile.limit_kills", kind, place, str(at), when, "frozen" * frozen]
    pipe = subprocess.PIPE
    process = start_program(words, env=environment({}), cwd=ROOT, stdout=pipe, stderr=pipe)
    said, errors = process.communicate(timeout=60)
    status = process.wait()
    assert status in (0, -signal.SIGKILL), errors.decode()
    return status, said.decode().split()


async def kill_at_writes(kind: str, folder: Path, lives: Sequence[tuple[int, str]]) -> Report:
    """Run it: for each moment of death, three lives one after the other on a ledger of their own."""
    report = Report()
    for number, (at, when) in enumerate(lives):
        place = url_of(folder / str(number)) if kind == "postgres" else str(folder / str(number))
        if kind != "postgres":
            os.makedirs(place)
        async with opened(kind, place) as ledger:
            await ledger.mint(OWNER, CREDITS, cause="grant:test:kills")
            await ledger.change_limits(OWNER, LimitChange(frozenset({"credits_per_day"}), credits_per_day=CAP))
        for again in range(2):  # the second life counts on from what the first one left
            status, said = await asyncio.to_thread(live_and_die, kind, place, at, when)
            report.kills += status != 0
            report.answered |= set(said)
            report.wrong += [f"{at} {when} {again}: {each}" async for each in audit(kind, place, set(said), report)]
        status, said = await asyncio.to_thread(live_and_die, kind, place, at, when, frozen=True)
        report.kills += status != 0
        report.wrong += [f"{at} {when} frozen: {each}" async for each in audit_freeze(kind, place, said, report)]
    return report


async def audit(kind: str, place: str, answered: set[str], report: Report) -> AsyncIterator[str]:
    """What is wrong with the books after a death."""
    async with opened(kind, place) as ledger:
        rows = await ledger.file.read(
            lambda db: db.execute("SELECT call_id, credits, state FROM reservation").fetchall()
        )
        limits = await ledger.change_limits(OWNER, NOTHING)
        counted = sum(credits for _, credits, state in rows if state in ("open", "posted"))
        posted = {call.rpartition(":")[2] for call, _, state in rows if state == "posted"}
        report.spent += counted
        if limits.spent_today != counted:
            yield f"{limits.spent_today} are counted for the day, and its calls took {counted}"
        if counted > CAP:
            yield f"{counted} of {CAP} were spent"
        for call in sorted(answered - posted):
            yield f"{call} was answered and is not charged"
        left = await ledger.balance(OWNER)
        if left != CREDITS - counted:
            yield f"{left} are left of {CREDITS} after {counted}"
        for breach in await ledger.check():
            yield f"{breach}"


async def audit_freeze(kind: str, place: str, said: list[str], report: Report) -> AsyncIterator[str]:
    """What is wrong after the death of a process that froze the token before it called."""
    async with opened(kind, place) as ledger:
        limits = await ledger.change_limits(OWNER, NOTHING)
        if "frozen" not in said:
            return
        report.freezes += 1
        if limits.frozen_at is None:
            yield "the freeze was answered and is gone"
        if said != ["frozen"]:
            yield f"bought after the freeze: {said}"
        try:
            await ledger.charge("call_after", OWNER, 1, endpoint=PATH)
            yield "a frozen token paid after the restart"
        except InsufficientCredits as refusal:
            if refusal.extra["cap"] != "frozen":
                yield f"refused by {refusal.extra['cap']}"


def plan_lives(count: int) -> list[tuple[int, str]]:
    """The moments of death: every write from the first on, before it and after it, and answers that nobody got."""
    moments = [(at, when) for at in range(1, MOST_WRITES + 1) for when in ("before", "after")]
    moments += [(at, ANSWERED) for at in (1, 2, 5, 9)]
    step = max(1, len(moments) // count)
    return moments[::step][:count]


def main(words: list[str]) -> int:
    if len(words) >= 4:
        kind, place, at, when = words[:4]
        asyncio.run(spend_until_killed(kind, place, int(at), when, "frozen" in words[4:]))
        return 0
    lives, wrong, report_line = plan_lives(int(words[0]) if words else 52), list[str](), print
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            report = asyncio.run(kill_at_writes(kind, Path(folder), lives))
        show(kind, report, report_line)
        wrong += [f"{kind}: {each}" for each in report.wrong]
    print("\n".join(wrong) or "no cap is crossed, the day's count is that of its calls, and every freeze holds")
    return bool(wrong)


def show(kind: str, report: Report, write: Callable[[str], None]) -> None:
    """Write what was counted on one kind of ledger."""
    write(f"{kind}: {report.kills} kills, {len(report.answered)} answered calls, {report.freezes} freezes that hold")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
