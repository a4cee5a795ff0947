"""Measure charges a second of processes on PostgreSQL: `python -m bench.shared_ledger WAY URL TOKENS`.

Ways, each with 64 callers in a process, into the same tables, each charge durable before its caller gets the result:
  ours     the ledger as it is: simultaneous charges share a transaction
  single   the same, with a transaction for each charge
  pool     asyncpg, one transaction a call on one of sixteen connections, as most services write it
A process prints `ready`, charges for as many seconds as each line says, and prints its figures as JSON. `charging`
keeps several of them on a schema of their own and releases them at the same moment.
"""

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from bench.ledger import Charge, charge_for
from bench.pairs import Sample, Side
from toolserver.clock import SystemClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql import group_commit
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres

CALLERS, POOL = 64, 16
PLENTY, PRICE = 10**9, 2
ENDPOINT = "/api/pro/briefing"
PATIENCE_S = 20.0
ROW_KEY = bytes(32)  # so that rows are sealed, as those of a service are


def name_token(number: int) -> str:
    """Return a token; every process has the same ones."""
    return f"svc_live_{number:064x}"


@asynccontextmanager
async def open_ours(url: str) -> AsyncIterator[Charge]:
    async with open_postgres(PostgresTerms(url, connect_s=PATIENCE_S, work_s=PATIENCE_S, row_key=ROW_KEY)) as store:
        ledger = SqlLedger(store, SystemClock())
        yield lambda token: ledger.charge(new_call_id(), token, PRICE, endpoint=ENDPOINT)


@asynccontextmanager
async def open_single(url: str) -> AsyncIterator[Charge]:
    group_commit.GROUP = 1
    async with open_ours(url) as charge:
        yield charge


@asynccontextmanager
async def open_pool(url: str) -> AsyncIterator[Charge]:
    async with asyncpg.create_pool(url, min_size=POOL, max_size=POOL) as pool:

        async def charge(token: str) -> None:
            async with pool.acquire() as db, db.transaction():
                await charge_alone(db, token)

        yield charge


async def charge_alone(db: Any, token: str) -> None:
    """Write the rows of one charge, statement by statement, in an open transaction. Raises LookupError."""
    hashed, now = token_hash(token).hex(), time.time_ns() // 1_000_000
    account = await db.fetchval(
        """UPDATE account SET debits = debits + $1 WHERE debits + pending + $1 <= credits
           AND id = (SELECT account FROM token WHERE hash = $2 AND revoked_at IS NULL) RETURNING id""",
        PRICE,
        hashed,
    )
    if account is None:
        raise LookupError("no credits")
    transfer = await db.fetchval(
        """INSERT INTO transfer(seq, kind, debit, credit, amount, at)
           VALUES(nextval('bench_number'), 'posted', $1, 2, $2, $3) RETURNING seq""",
        account,
        PRICE,
        now,
    )
    await db.execute(
        """INSERT INTO reservation(
             call_id, account, credits, state, endpoint, service, transfer, expires_at, settled_at)
           VALUES($1, $2, $3, 'posted', $4, '', $5, 0, $6)""",
        new_call_id(),
        account,
        PRICE,
        ENDPOINT,
        transfer,
        now,
    )


WAYS = {"ours": open_ours, "single": open_single, "pool": open_pool}


async def serve(way: str, url: str, tokens: int) -> None:
    """Run one process: warm up and report; for each line with a number of seconds, charge that long and report."""
    names = [name_token(number) for number in range(tokens)]
    async with WAYS[way](url) as charge:
        await charge_for(charge, names, 0.3, CALLERS)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            cpu, begun = time.process_time(), time.perf_counter()
            took = sorted(await charge_for(charge, names, float(line), CALLERS))
            wall, spent = time.perf_counter() - begun, time.process_time() - cpu
            p99 = took[int(len(took) * 0.99)]
            print(json.dumps({"count": len(took), "seconds": wall, "cpu_s": spent, "p99_s": p99}), flush=True)


@contextmanager
def new_schema(url: str) -> Iterator[str]:
    """Yield the URL of a schema for one measurement, with 1,000 tokens with ample credits; it is dropped afterwards."""
    name = f"bench_{secrets.token_hex(6)}"
    asyncio.run(_run(url, f"CREATE SCHEMA {name}"))
    try:
        inside = f"{url}{'&' if '?' in url else '?'}search_path={name}"
        asyncio.run(_mint(inside, 1000))
        yield inside
    finally:
        asyncio.run(_run(url, f"DROP SCHEMA {name} CASCADE"))


async def _run(url: str, script: str) -> None:
    db = await asyncpg.connect(url)
    try:
        await db.execute(f"SET client_min_messages = warning; {script}")
    finally:
        await db.close()


async def _mint(url: str, count: int) -> None:
    async with open_postgres(PostgresTerms(url, connect_s=PATIENCE_S, work_s=PATIENCE_S, row_key=ROW_KEY)) as store:
        ledger = SqlLedger(store, SystemClock())
        names = [name_token(number) for number in range(count)]
        await asyncio.gather(*(ledger.mint(name, PLENTY, cause=f"bench {name[-6:]}") for name in names))
    await _run(url, "CREATE SEQUENCE bench_number START 1000000000; ANALYZE")


@contextmanager
def charging(name: str, way: str, url: str, *, processes: int, tokens: int, seconds: float) -> Iterator[Side]:
    """Keep this number of processes on their own schema. Yield the side in which they charge at the same time."""
    with new_schema(url) as inside, ExitStack() as stack:
        words = [sys.executable, "-m", "bench.shared_ledger", way, inside, str(tokens)]
        running = [stack.enter_context(_running(words)) for _ in range(processes)]
        for each in running:
            if each.read() != "ready\n":
                raise SystemExit(f"{way}: a process did not begin")

        def measure() -> Sample:
            for each in running:
                each.write(f"{seconds}\n")
            said = [json.loads(each.read()) for each in running]
            count = sum(one["count"] for one in said)
            return {
                "per_s": sum(one["count"] / one["seconds"] for one in said),
                "cpu_us": sum(one["cpu_s"] for one in said) / count * 1e6,
                "p99_ms": max(one["p99_s"] for one in said) * 1e3,
            }

        yield Side(name, measure)


@dataclass(frozen=True, slots=True)
class Talking:
    """A process that is spoken to line by line."""

    write: Callable[[str], object]
    read: Callable[[], str]


@contextmanager
def _running(words: list[str]) -> Iterator[Talking]:
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Talking(process.stdin.write, process.stdout.readline)
        process.stdin.close()
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def measure_commit_ms(url: str, count: int = 200) -> float:
    """Return the time in ms of a transaction that writes one row: the server's disk, and the way there."""

    async def ask() -> list[float]:
        db, took = await asyncpg.connect(url), []
        try:
            for _ in range(count):
                begun = time.perf_counter()
                await db.execute("SELECT pg_current_xact_id(), pg_logical_emit_message(true, 'bench', '')")
                took.append(time.perf_counter() - begun)
        finally:
            await db.close()
        return sorted(took)

    return asyncio.run(ask())[count // 2] * 1e3


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
