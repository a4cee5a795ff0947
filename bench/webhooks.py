"""Measure rows 13 and 14; `python -m bench.webhooks [--seconds N]`: the rates of push delivery.

claim     the time per row of due subscriptions claimed, with 100,000 stored against 1,000
look      a look at the queue when nothing is due, with 100,000 stored
send      signed bodies of 2 KB to a receiver in another process, over new connections and over kept ones
judge     10,000 conditions judged on one payload
memory    of this process while 100,000 subscriptions are stored and claimed in batches

All of it is CPU time of this process, which other load on the machine affects least. Where one process sends without
pause, its CPU time limits its deliveries.
"""

import argparse
import asyncio
import multiprocessing
import resource
import sqlite3
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import msgspec
from yarl import URL

from bench.judge import Bar, Effort, Line, Table, Verdict, show_table, show_verdict
from bench.pairs import PIECE, Pair, Sample, Samples, Side, measure_pairs, ratio_of, reference_of
from toolserver.clock import SystemClock
from toolserver.sql.migrate import migrate
from toolserver.webhooks import store
from toolserver.webhooks.conditions import (
    ConditionState,
    WebhookCondition,
    decode_condition,
    encode_condition,
    evaluate,
)
from toolserver.webhooks.delivery import DeliveryNetwork, WebhookSender
from toolserver.webhooks.egress import DnsLane, EgressGuard
from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.store import WebhookTables

R = TypeVar("R")

NOW, SLOT_MS = 1_800_000_000_000, 300_000
BATCH, BODY = 500, b'{"data":"' + b"x" * 2000 + b'"}'
CALLERS = 128


def fill(count: int) -> sqlite3.Connection:
    """Fill a database in memory with this number of active subscriptions, spread over the next five minutes."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db)
    step = max(1, SLOT_MS // count)
    condition = encode_condition(WebhookCondition("a.b", above=10))
    rows = (
        WebhookSubscription(
            id=f"wh_{n:016x}",
            owner=f"{n // 5:064x}",
            payer=f"{n // 5:064x}",
            account=f"acct_{n // 5:032x}",
            endpoint="world-deltas",
            url=f"https://hooks{n}.example/hook",
            host=f"hooks{n}.example",
            params=b"{}",
            sealed=b"x" * 120,
            created_at=NOW - SLOT_MS + (n * step) % SLOT_MS,
            due_at=NOW + (n * step) % SLOT_MS,
            condition=condition,
        )
        for n in range(count)
    )
    db.execute("BEGIN")
    db.executemany(store.ADD_SUBSCRIPTION, rows)
    db.execute("COMMIT")
    return db


def claim_side(name: str, db: sqlite3.Connection) -> Side:
    """Return the side of two batches claimed and given up again: `cpu_us` a row."""
    tables = WebhookTables(db)

    def measure() -> Sample:
        db.execute("BEGIN IMMEDIATE")
        started = time.process_time()
        claimed = sum(len(tables.claim_due(NOW + SLOT_MS, BATCH, failing=False)) for _ in range(2))
        spent = time.process_time() - started
        db.execute("ROLLBACK")
        assert claimed == 2 * BATCH, claimed
        return {"cpu_us": spent / claimed * 1e6}

    return Side(name, measure)


def look_side(db: sqlite3.Connection, times: int = 200) -> Side:
    """Return the side of a look at a queue in which nothing is due."""
    tables = WebhookTables(db)

    def measure() -> Sample:
        started = time.process_time()
        for _ in range(times):
            tables.next_due()
            for failing in (False, True):
                tables.claim_due(NOW - 1, BATCH, failing=failing)
        return {"cpu_us": (time.process_time() - started) / times * 1e6}

    return Side("a look when nothing is due", measure)


def claim_all(db: sqlite3.Connection, count: int) -> None:
    """Claim everything in batches."""
    tables, claimed = WebhookTables(db), 0
    while claimed < count:
        db.execute("BEGIN IMMEDIATE")
        claimed += len(tables.claim_due(NOW + SLOT_MS, BATCH, failing=False))
        db.execute("COMMIT")


def judge_conditions(count: int = 10_000) -> float:
    """Return the seconds to judge stored conditions on one payload, the minimum of five rounds."""
    stored = [(encode_condition(WebhookCondition("a.b", above=10)), msgspec.json.encode(ConditionState()))] * count
    decode = msgspec.json.Decoder(ConditionState).decode

    def once() -> float:
        started = time.process_time()
        for condition, state in stored:
            evaluate(decode_condition(condition), decode(state), {"a": {"b": 5}}, 0)
        return time.process_time() - started

    return min(once() for _ in range(5))


def receive(pipe: Connection) -> None:
    """Run a receiver in its own process: it reads a request and answers 204."""
    answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    last = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

    class Reader(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport, self.buffer, self.missing = transport, b"", 0

        def data_received(self, data: bytes) -> None:
            self.buffer += data
            while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
                head = self.buffer[:end].lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                if len(self.buffer) < end + 4 + length:
                    return
                self.buffer = self.buffer[end + 4 + length :]
                closing = b"connection: close" in head
                self.transport.write(last if closing else answer)
                if closing:
                    self.transport.close()

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Reader, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def send_side(name: str, port: int, seconds: float, headers: dict[str, str]) -> Side:
    """Return the side of deliveries by many simultaneous callers: `cpu_us` of one in this process, and `per_s`."""

    async def measure() -> Sample:
        lane, done = DnsLane(EgressGuard(allow_loopback=True), SystemClock()), 0
        sender, url = WebhookSender(lane, SystemClock(), DeliveryNetwork()), URL(f"http://127.0.0.1:{port}/hook")
        begun, cpu = time.perf_counter(), time.process_time()

        async def caller() -> None:
            nonlocal done
            while time.perf_counter() < begun + seconds:
                made = await sender.send(url, BODY, headers)
                assert made.delivered, made
                done += 1

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        spent, took = time.process_time() - cpu, time.perf_counter() - begun
        await sender.close()
        lane.close()
        return {"cpu_us": 1e6 * spent / done, "per_s": done / took}

    return Side(name, measure)


def with_receiver(job: Callable[[int], Awaitable[R]]) -> R:
    """Run a job with the port of a receiver in another process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=receive, args=(theirs,), daemon=True)
    process.start()
    try:
        return asyncio.run(job(ours.recv()))  # type: ignore[arg-type]
    finally:
        process.terminate()
        process.join()


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def per_second(piece: Sample, side: Sample) -> float:
    """Return the deliveries for a second of CPU time of the reference machine."""
    return 1e6 / reference_of("cpu_us")(piece, side)


async def compare(port: int, effort: Effort) -> tuple[list[Pair], Samples]:
    """Measure claims among many subscriptions against few, looks, and deliveries of one process."""
    few, many = claim_side("among 1,000", fill(1_000)), claim_side("among 100,000", crowd := fill(100_000))
    new = send_side("new connections", port, effort.seconds, {"Connection": "close"})
    kept = send_side("kept connections", port, effort.seconds, {})
    pairs = [
        Pair("a claim among 100,000 / among 1,000", (many, few), ratio_of("cpu_us")),
        Pair(
            "a look when nothing is due", (PIECE, look_side(crowd)), lambda *both: reference_of("cpu_us")(*both) / 1e3
        ),
        Pair("deliveries, new connections", (PIECE, new), per_second),
        Pair("deliveries, kept connections", (PIECE, kept), per_second),
    ]
    return pairs, await measure_pairs(pairs, effort.pairs)


def judge(effort: Effort) -> Verdict:
    """Judge the cost of a claim among many subscriptions, and the deliveries of one process."""
    (claim, look, new, kept), _ = with_receiver(lambda port: compare(port, effort))
    bars = [
        Bar.of_pair(claim, 13, 1.5, "x"),
        Bar.of_pair(look, 13, 0.5, "ms"),
        Bar.of_pair(new, 14, 2000, "/s", at_least=True),
        Bar.of_pair(kept, 14, 5000, "/s", at_least=True),
    ]
    lines = [Line.of_values(pair.name.partition(", ")[2], pair.figures) for pair in (new, kept)]
    title = "Webhooks of 2 KB delivered for a second of CPU time of one process"
    return Verdict(bars, [Table("webhooks", title, "deliveries/s", lines, more=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Effort.seconds, help="of each half of sending")
    found = judge(Effort(seconds=parser.parse_args().seconds))
    show_table(found.tables[0])
    show_verdict(found.bars, {})
    before, many = resident_mb(), fill(100_000)
    claim_all(many, 100_000)
    print(f"\nstoring and claiming 100,000 adds {resident_mb() - before:.0f} MB")
    print(f"10,000 conditions are judged in {1e3 * judge_conditions():.1f} ms")


if __name__ == "__main__":
    main()
