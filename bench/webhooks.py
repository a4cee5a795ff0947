"""Measure rows 13 and 14; `python -m bench.webhooks [--seconds N] [--json FILE]`: the rates of push delivery.

claim     due subscriptions claimed a second, and the time per row, with 1,000 and with 100,000 stored
look      a look at the queue when nothing is due, with 100,000 stored
send      signed bodies of 2 KB to a receiver in another process, over new connections and over kept ones
judge     10,000 conditions judged on one payload
memory    of this process while 100,000 subscriptions are claimed and judged in batches

Work of this process alone is measured in CPU time, which other load on the machine affects least. For the same reason
the best of three rounds of sending is shown.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import sqlite3
import time
from collections.abc import Awaitable, Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from yarl import URL

from bench.judge import Bar, Effort, Line, Table, Verdict
from toolserver.clock import SystemClock
from toolserver.storage.migrate import migrate
from toolserver.webhooks import sqlite_tables
from toolserver.webhooks.condition_state import ConditionState, evaluate
from toolserver.webhooks.conditions import WebhookCondition, decode_condition, encode_condition
from toolserver.webhooks.delivery import WebhookSender
from toolserver.webhooks.dns_lane import DnsLane
from toolserver.webhooks.egress import EgressGuard
from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.sqlite_tables import SqliteTables

R = TypeVar("R")

NOW, SLOT_MS = 1_800_000_000_000, 300_000
BATCH, BODY = 500, b'{"data":"' + b"x" * 2000 + b'"}'
CALLERS, ROUNDS = 128, 3


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
    db.executemany(sqlite_tables.ADD_SUBSCRIPTION, rows)
    db.execute("COMMIT")
    return db


def claim_all(db: sqlite3.Connection, count: int) -> float:
    """Claim everything in batches; return the seconds per row."""
    tables, claimed, started = SqliteTables(db), 0, time.process_time()
    while claimed < count:
        db.execute("BEGIN IMMEDIATE")
        claimed += len(tables.claim_due(NOW + SLOT_MS, BATCH, failing=False))
        db.execute("COMMIT")
    return (time.process_time() - started) / count


def look_empty(db: sqlite3.Connection, times: int = 1000) -> float:
    """Return the seconds for a look at a queue in which nothing is due."""
    tables, started = SqliteTables(db), time.process_time()
    for _ in range(times):
        tables.next_due()
        for failing in (False, True):
            tables.claim_due(NOW - 1, BATCH, failing=failing)
    return (time.process_time() - started) / times


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


async def send(port: int, seconds: float, headers: dict[str, str]) -> tuple[float, float]:
    """Return deliveries a second by many simultaneous callers, and the CPU time of one in microseconds."""
    guard = EgressGuard(allow_loopback=True)
    lane = DnsLane(guard, SystemClock())
    sender, url, done = WebhookSender(guard, lane), URL(f"http://127.0.0.1:{port}/hook"), 0
    end, cpu = time.perf_counter() + seconds, time.process_time()

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < end:
            made = await sender.send(url, BODY, headers)
            assert made.delivered, made
            done += 1

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    cpu = time.process_time() - cpu
    await sender.close()
    lane.close()
    return done / seconds, 1e6 * cpu / done


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


def measure_all(seconds: float) -> dict[str, float]:
    """Measure every figure."""
    few, many = fill(1_000), fill(100_000)
    before = resident_mb()
    found = {
        "claim_us_per_row_1e3": 1e6 * claim_all(few, 1_000),
        "claim_us_per_row_1e5": 1e6 * claim_all(many, 100_000),
        "claim_added_mb_1e5": resident_mb() - before,
        "empty_look_us_1e5": 1e6 * look_empty(many),
        "judge_10000_ms": 1e3 * judge_conditions(),
    }
    for name, headers in (("new", {"Connection": "close"}), ("kept", {})):
        rates = [with_receiver(partial(send, seconds=seconds, headers=headers)) for _ in range(ROUNDS)]
        rate, cpu_us = max(rate for rate, _ in rates), min(cpu for _, cpu in rates)
        found |= {f"send_per_s_{name}_connections": rate, f"send_cpu_us_{name}_connections": cpu_us}
    return found


def judge(effort: Effort) -> Verdict:
    """Judge the cost of a claim among many subscriptions, and the deliveries of one process."""
    found = measure_all(effort.seconds)
    ratio = found["claim_us_per_row_1e5"] / found["claim_us_per_row_1e3"]
    bars = [
        Bar(13, "a claim among 100,000 / among 1,000", ratio, 1.5, "x"),
        Bar(13, "a look when nothing is due", found["empty_look_us_1e5"] / 1e3, 0.5, "ms"),
        Bar(14, "deliveries, new connections", found["send_per_s_new_connections"], 2000, "/s", at_least=True),
        Bar(14, "deliveries, kept connections", found["send_per_s_kept_connections"], 5000, "/s", at_least=True),
    ]
    kinds = ("new", "kept")
    lines = [Line(f"{kind} connections", *[found[f"send_per_s_{kind}_connections"]] * 3) for kind in kinds]
    table = Table("webhooks", "Webhooks of 2 KB delivered by one process", "deliveries/s", lines, more=True)
    return Verdict(bars, [table])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2, help="of each round of sending")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = measure_all(given.seconds)
    for name, value in found.items():
        print(f"{name:32} {value:12,.1f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
