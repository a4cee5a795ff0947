"""Measure row 9; `python -m bench.ledger [--seconds N] [--pairs N]`: durable charges a second, alone.

Three ways to charge a call to one of 1,000 tokens, into the same tables, all with synchronous=FULL, taking turns. Each
signs and stores a receipt of the call and seals the rows that it writes:
  usual     aiosqlite, one transaction a call, as most services write it
  charge    ours, in one step: for a cached answer
  two steps ours, reserve, then settle and issue the receipt: for an answer that has to be fetched
The disk is measured as well: with one caller every charge waits for at least one fsync, and no way can be faster.
"""

import argparse
import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiosqlite

from bench.judge import Bar, Effort, Line, Table, Verdict, show_table, show_verdict
from bench.pairs import Pair, Sample, Samples, Side, measure_pairs, ratio_of, value_of
from toolserver.calls.charge_store import ChargeWithReceipt, SqlChargeStore
from toolserver.clock import SystemClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.ledger.operations import Charge as ChargeOperation
from toolserver.money.ledger.state import Settlement, key_of
from toolserver.money.ledger.store import open_ledger
from toolserver.money.receipts.issue import IssueReceipt, ReceiptIssuer
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import BucketNamer
from toolserver.money.receipts.sign import Body, Sale, receipt_id
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.row_seal import KEY, RowSeal, read_key
from toolserver.sql.sealed_file import SealedConnection, install_seal, seal_changes

CALLERS, JUDGED = (1, 8, 64, 256), 64
WAYS = ("usual", "charge", "two steps")
TOKENS = 1000
PLENTY = 10**9
PRICE = 2
ENDPOINT = "/api/pro/briefing"
ANSWER = Body("5c" * 32, 4096)

Charge = Callable[[str], Awaitable[object]]


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


def charge_side(way: str, charge: Charge, tokens: list[str], seconds: float, callers: int) -> Side:
    """Return the side of a way of charging with a number of callers."""

    async def measure() -> Sample:
        cpu, begun = time.process_time(), time.perf_counter()
        took = sorted(await charge_for(charge, tokens, seconds, callers))
        wall, spent = time.perf_counter() - begun, time.process_time() - cpu
        p50, p99 = (took[int(len(took) * share)] * 1e3 for share in (0.5, 0.99))
        return {"per_s": len(took) / wall, "cpu_us": spent / len(took) * 1e6, "p50_ms": p50, "p99_ms": p99}

    return Side(f"{way}, {callers}", measure)


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


def make_issuer(path: Path) -> ReceiptIssuer:
    """Return what signs the receipts of a ledger's file, with keys beside the file."""
    ring = KeyRing(path.parent / "keys" / f"{path.stem}.json", SystemClock())
    return ReceiptIssuer(ring, service="https://bench.example", origin="bench.example/log", buckets=BucketNamer(ring))


def describe_sale(settled: Settlement, token: str, now: float) -> Sale:
    """Return what the receipt of a call says: the answer is the same for all calls of a second, as a cached one is."""
    return Sale(
        settled.call_id,
        token_hash(token).hex(),
        ENDPOINT,
        f"GET {ENDPOINT}",
        PRICE,
        settled.charged,
        settled.remaining,
        body=ANSWER,
        captured_at=float(int(now)),
        sla_s=60.0,
    )


@asynccontextmanager
async def ours(path: Path, tokens: list[str]) -> AsyncIterator[dict[str, Charge]]:
    async with open_ledger(path) as ledger:
        await asyncio.gather(*(ledger.mint(token, PLENTY, cause=token[-16:]) for token in tokens))
        issuer = make_issuer(path)
        charges, receipts = SqlChargeStore(ledger, issuer.buckets), SqlReceiptStore(ledger.file)

        def issue(settled: Settlement, token: str) -> IssueReceipt:
            now = time.time()
            return IssueReceipt(issuer, describe_sale(settled, token, now), now)

        async def charge(token: str) -> object:
            asked = ChargeOperation(new_call_id(), key_of(token), PRICE, ENDPOINT, "")
            return await charges.charge(ChargeWithReceipt(asked, lambda settled: issue(settled, token)))

        async def two_steps(token: str) -> object:
            call_id = new_call_id()
            await ledger.reserve(call_id, token, PRICE, endpoint=ENDPOINT, ttl_s=300)
            settled = await ledger.settle(call_id, no_charge=None)
            return await receipts.issue(issue(settled, token))

        yield {"charge": charge, "two steps": two_steps}


@asynccontextmanager
async def usual(path: Path, tokens: list[str]) -> AsyncIterator[dict[str, Charge]]:
    """Open the same tables by aiosqlite: begin, read, write, seal, commit, each awaited, under a lock."""
    async with open_ledger(path) as ledger:
        await asyncio.gather(*(ledger.mint(token, PLENTY, cause=token[-16:]) for token in tokens))
    issuer = make_issuer(path)
    async with aiosqlite.connect(path, isolation_level=None, factory=SealedConnection) as db:
        await db.execute("PRAGMA synchronous=FULL")
        await db.execute("PRAGMA foreign_keys=ON")
        await db._execute(install_seal, db._conn, RowSeal(read_key(path.parent / KEY)))
        turn = asyncio.Lock()

        async def charge(token: str) -> object:
            async with turn:
                call_id, now = new_call_id(), time.time()
                await db.execute("BEGIN IMMEDIATE")
                left = await usual_charge(db, call_id, token, PRICE, ENDPOINT)
                told = Settlement(call_id, PRICE, left)
                receipt = issuer.sign(describe_sale(told, token, now), now, None, receipt_id(call_id)).receipt
                await db.execute(
                    "INSERT INTO receipt(id, owner, core, key, signature, at) VALUES(?,?,?,?,?,?)", tuple(receipt)
                )
                await db._execute(seal_changes, db._conn)
                await db.execute("COMMIT")
                assert db._conn is not None
                db._conn.changes.forget()  # type: ignore[attr-defined]
            return receipt

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


async def compare(folder: Path, *, seconds: float, count: int) -> tuple[list[Pair], Samples]:
    """Compare every way with the usual one, with each number of callers. Return what is judged, and all samples."""
    tokens = [f"svc_live_{secrets.token_hex(32)}" for _ in range(TOKENS)]
    async with AsyncExitStack() as stack:
        ways = await stack.enter_async_context(usual(folder / "usual.sqlite3", tokens))
        ways |= await stack.enter_async_context(ours(folder / "ours.sqlite3", tokens))
        sides = {
            (way, callers): charge_side(way, charge, tokens, seconds, callers)
            for callers in CALLERS
            for way, charge in ways.items()
        }
        both = (sides["charge", JUDGED], sides["usual", JUDGED])
        judged = [
            Pair(f"charges / aiosqlite, {JUDGED} callers, rate", both, ratio_of("per_s"), often=4),
            Pair(f"a charge, {JUDGED} callers, p99", both[:1], value_of("p99_ms"), often=2),
        ]
        shown = [
            Pair(side.name, (side, sides["usual", callers]), ratio_of("per_s"), is_judged=False)
            for (way, callers), side in sides.items()
            if way != "usual" and (way, callers) != ("charge", JUDGED)
        ]
        samples = await measure_pairs(judged, count)
        for name, more in (await measure_pairs(shown, count // 2)).items():
            samples[name] += more
    return judged, samples


def lines_of_ways(samples: Samples, what: str) -> list[Line]:
    """Return the lines of a figure, by way and callers."""
    return [
        Line.of_values(way, [sample[what] for sample in samples[f"{way}, {callers}"]], f"{callers} callers")
        for callers in CALLERS
        for way in WAYS
    ]


def judge(effort: Effort, folder: Path | None = None) -> Verdict:
    """Judge the rate of charges against the usual way, and the time that a caller waits for one."""
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=folder) as name:
        pairs, samples = asyncio.run(compare(Path(name), seconds=effort.seconds, count=effort.pairs))
    rate, p99 = pairs
    bars = [Bar.of_pair(rate, 9, 20, "x", at_least=True), Bar.of_pair(p99, 9, 10, "ms")]
    lines = lines_of_ways(samples, "per_s")
    title = "Durable charges a second, without a server"
    return Verdict(bars, [Table("ledger", title, "charges/s", lines, "", True, ("usual",))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Effort.seconds)
    parser.add_argument("--pairs", type=int, default=Effort.pairs)
    parser.add_argument("--folder", type=Path, help="where the files go; it should be on a disk, not in memory")
    args = parser.parse_args()
    found = judge(Effort(pairs=args.pairs, seconds=args.seconds), args.folder)
    show_table(found.tables[0])
    show_verdict(found.bars, {})
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-", dir=args.folder) as folder:
        disk = fsyncs(Path(folder))
    print(f"\nfdatasync of 4 KiB: p50 {disk[len(disk) // 2]:.2f} ms, p99 {disk[int(len(disk) * 0.99)]:.2f} ms")


if __name__ == "__main__":
    main()
