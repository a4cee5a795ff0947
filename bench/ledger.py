"""Measure row 9; `python -m bench.ledger [--seconds N] [--rounds N] [--json FILE]`: durable charges a second, alone.

Three ways to charge a call to one of 1,000 tokens, into the same tables, all with synchronous=FULL, taking turns:
  usual     aiosqlite, one transaction a call, as most services write it
  charge    ours, in one step: for a cached answer
  two steps ours, reserve, then settle: for an answer that has to be fetched
The disk is measured as well: with one caller every charge waits for at least one fsync, and no way can be faster.
"""

import argparse
import asyncio
import json
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiosqlite

from bench.judge import Bar, Effort, Line, Table, Verdict
from toolserver.core import ids
from toolserver.core.caller import token_hash
from toolserver.ledger.sqlite import open_ledger

CALLERS = (1, 8, 64, 256)
TOKENS = 1000
PLENTY = 10**9
PRICE = 2
ENDPOINT = "/api/pro/briefing"

Charge = Callable[[str], Awaitable[object]]


@dataclass
class Row:
    """One way with a number of callers, over the rounds."""

    way: str
    callers: int
    per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


async def charge_for(charge: Charge, tokens: list[str], seconds: float, callers: int) -> list[float]:
    """Return the seconds of each charge, by callers that charge one call after the other."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        turn = number
        while (begun := time.perf_counter()) < end:
            await charge(tokens[turn % len(tokens)])
            took.append(time.perf_counter() - begun)
            turn += 7

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return took


async def measure(row: Row, charge: Charge, tokens: list[str], seconds: float) -> None:
    """Measure one round of a row."""
    cpu, begun = time.process_time(), time.perf_counter()
    took = await charge_for(charge, tokens, seconds, row.callers)
    wall, spent = time.perf_counter() - begun, time.process_time() - cpu
    took.sort()
    row.per_s.append(len(took) / wall)
    row.p50_ms.append(took[len(took) // 2] * 1e3)
    row.p99_ms.append(took[int(len(took) * 0.99)] * 1e3)
    row.cpu_us.append(spent / len(took) * 1e6)


def fsyncs(folder: Path, count: int = 200) -> list[float]:
    """Return the times of syncs of a 4 KiB block, in ms."""
    took = []
    with (folder / "block").open("wb", buffering=0) as file:
        for _ in range(count):
            begun = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 4096, 0)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - begun) * 1e3)
    return sorted(took)


@asynccontextmanager
async def ours(path: Path, tokens: list[str]) -> AsyncIterator[dict[str, Charge]]:
    async with open_ledger(path) as ledger:
        await asyncio.gather(*(ledger.mint(token, PLENTY, cause=token[-16:]) for token in tokens))

        async def charge(token: str) -> object:
            return await ledger.charge(ids.call_id(), token, PRICE, endpoint=ENDPOINT)

        async def two_steps(token: str) -> object:
            call_id = ids.call_id()
            await ledger.reserve(call_id, token, PRICE, endpoint=ENDPOINT, ttl_s=300)
            return await ledger.settle(call_id, no_charge=None)

        yield {"charge": charge, "two steps": two_steps}


@asynccontextmanager
async def usual(path: Path, tokens: list[str]) -> AsyncIterator[dict[str, Charge]]:
    """Open the same tables by aiosqlite: begin, read, write, commit, each awaited, under a lock."""
    async with open_ledger(path) as ledger:
        await asyncio.gather(*(ledger.mint(token, PLENTY, cause=token[-16:]) for token in tokens))
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA synchronous=FULL")
        await db.execute("PRAGMA foreign_keys=ON")
        turn = asyncio.Lock()

        async def charge(token: str) -> object:
            async with turn:
                await db.execute("BEGIN IMMEDIATE")
                left = await usual_charge(db, ids.call_id(), token, PRICE, ENDPOINT)
                await db.execute("COMMIT")
            return left

        yield {"usual": charge}


async def usual_charge(db: aiosqlite.Connection, call_id: str, token: str, price: int, endpoint: str) -> int:
    """Write the rows of one charge, statement by statement, in an open transaction; return the balance. Raises
    LookupError.
    """
    hashed, now = token_hash(token).hex(), int(time.time() * 1000)
    found = await (
        await db.execute(
            """UPDATE account SET debits=debits+?1 WHERE debits+pending+?1<=credits
               AND id=(SELECT account FROM token WHERE hash=?2 AND revoked_at IS NULL)
               RETURNING id, credits-debits-pending""",
            (price, hashed),
        )
    ).fetchone()
    if found is None:
        await db.execute("ROLLBACK")
        raise LookupError("no credits")
    made = await db.execute(
        "INSERT INTO transfer(kind, debit, credit, amount, at) VALUES('posted', ?, 2, ?, ?)", (found[0], price, now)
    )
    await db.execute(
        """INSERT INTO reservation(call_id, account, credits, state, reason, endpoint, service, transfer, expires_at,
          settled_at) VALUES(?,?,?,'posted',NULL,?,'',?,0,?)""",
        (call_id, found[0], price, endpoint, made.lastrowid, now),
    )
    return int(found[1])


async def rounds(folder: Path, *, seconds: float, count: int) -> tuple[list[Row], list[float]]:
    """Measure every way with every number of callers, in turn, each round on new files; and the disk alone."""
    table: dict[tuple[str, int], Row] = {}
    disk: list[float] = []
    for number in range(count):
        disk += fsyncs(folder)
        tokens = [f"svc_live_{secrets.token_hex(32)}" for _ in range(TOKENS)]
        async with AsyncExitStack() as stack:
            ways = await stack.enter_async_context(usual(folder / f"usual-{number}.sqlite3", tokens))
            ways |= await stack.enter_async_context(ours(folder / f"ours-{number}.sqlite3", tokens))
            for callers in CALLERS:
                for way, charge in ways.items():
                    row = table.setdefault((way, callers), Row(way, callers))
                    await measure(row, charge, tokens, seconds)
    return list(table.values()), sorted(disk)


def shown(rows: list[Row]) -> str:
    """Return a table: medians, and the ratio to the usual way with as many callers."""
    lines = [
        "| way | callers | charges/s | p50 ms | p99 ms | CPU µs | times the usual | CPU, times less |",
        "|---|---|---|---|---|---|---|---|",
    ]
    usual = {row.callers: row for row in rows if row.way == "usual"}
    for row in sorted(rows, key=lambda row: row.callers):
        rate, p50, p99, cpu = (statistics.median(v) for v in (row.per_s, row.p50_ms, row.p99_ms, row.cpu_us))
        base = usual[row.callers]
        ratios = f"{rate / statistics.median(base.per_s):.1f} | {statistics.median(base.cpu_us) / cpu:.1f}"
        lines.append(f"| {row.way} | {row.callers} | {rate:,.0f} | {p50:.2f} | {p99:.2f} | {cpu:.0f} | {ratios} |")
    return "\n".join(lines)


def judge(effort: Effort) -> Verdict:
    """Judge the rate of charges against the usual way, and the time that a caller waits for one."""
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as folder:
        rows, _ = asyncio.run(rounds(Path(folder), seconds=effort.seconds, count=effort.rounds))
    ours, usual = ({row.way: row for row in rows if row.callers == 64}[way] for way in ("charge", "usual"))
    times = statistics.median(ours.per_s) / statistics.median(usual.per_s)
    lines = [
        Line(row.way, statistics.median(row.per_s), min(row.per_s), max(row.per_s), f"{row.callers} callers")
        for row in sorted(rows, key=lambda row: row.callers)
    ]
    table = Table("ledger", "Durable charges a second, without a server", "charges/s", lines, "", True, ("usual",))
    p99 = statistics.median(ours.p99_ms)
    bars = [
        Bar(9, "charges / aiosqlite, 64 callers, rate", times, 25, "x", at_least=True),
        Bar(9, "a charge, 64 callers, p99", p99, 10, "ms"),
    ]
    return Verdict(bars, [table])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files go; it should be on a disk, not in memory")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=args.folder) as folder:
        rows, disk = asyncio.run(rounds(Path(folder), seconds=args.seconds, count=args.rounds))
    print(shown(rows))
    print(f"\nfdatasync of 4 KiB: p50 {disk[len(disk) // 2]:.2f} ms, p99 {disk[int(len(disk) * 0.99)]:.2f} ms")
    if args.json:
        told = {"rows": [vars(row) for row in rows], "fdatasync_ms": disk}
        args.json.write_text(json.dumps(told, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
