"""Measure rows 10 and 26, and more: `python -m bench.instances [--database URL] [--seconds N] [--requests N] [--rounds
N]`.

Ledger: three processes on one account against three on 1,000, three against one, group commit against a transaction
for each charge, and against one transaction a call through a pool (`bench.shared_ledger`). Service: calls for each
second of CPU time of two workers against one, and the cost of counting a call in Redis. Variants take turns in each
round; the exit code is 1 where a target is missed. The database should wait for its disk (fsync = on).
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import asyncpg

from bench.cold import SERVERS
from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON
from bench.judge import Bar, Effort, Line, NotHere, Table, Verdict
from bench.load import run
from bench.processes import TICK_US, Server, python, started
from bench.rows import Row, get, lines_of
from bench.shared_ledger import Charged, measure, measure_commit_ms, new_schema

DATABASE = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/test")
CALL = get("/api/btc-price", **BEHIND_PROXY)
STARTS_S = 20.0
COUNTED = EVERYTHING_ON | {"TOOLSERVER_LIMITS__SPACING_S": "1e-12"}  # calls of one tick are counted at one time

LEDGER = {  # name: way, processes, tokens
    "one, 1,000 accounts": ("ours", 1, 1000),
    "three, 1,000 accounts": ("ours", 3, 1000),
    "three, one account": ("ours", 3, 1),
    "one, a transaction each": ("single", 1, 1000),
    "one, through a pool": ("pool", 1, 1000),
}


@dataclass
class Ratio:
    """A ratio with a target, either `at_most` or at least."""

    name: str
    found: float
    target: float
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        return self.found <= self.target if self.at_most else self.found >= self.target

    def line(self) -> str:
        bound = "at most" if self.at_most else "at least"
        return f"{self.name:76} {self.found:8.2f}   {bound} {self.target:g}{'' if self.is_met else '   MISSED'}"


def compare_ledgers(url: str, *, seconds: float, rounds: int) -> tuple[dict[str, list[Charged]], list[Ratio]]:
    """Measure each way of charging in each round, and compare them by charges a second."""
    found: dict[str, list[Charged]] = {name: [] for name in LEDGER}
    for _ in range(rounds):
        for name, (way, processes, tokens) in LEDGER.items():
            found[name].append(measure(way, url, processes=processes, tokens=tokens, seconds=seconds))
    rate = {name: statistics.median(each.per_s for each in rows) for name, rows in found.items()}
    alone, three = rate["one, 1,000 accounts"], rate["three, 1,000 accounts"]
    ratios = [
        Ratio("three processes on one account / on 1,000 accounts", rate["three, one account"] / three, 0.8),
        Ratio("each of three processes / one alone, on the same cores and disk", three / 3 / alone, 0.3),
        Ratio("grouped / a transaction for each charge, 64 callers", alone / rate["one, a transaction each"], 8),
        Ratio("grouped / one transaction a call through a pool, 64 callers", alone / rate["one, through a pool"], 7),
    ]
    return found, ratios


@contextmanager
def redis() -> Iterator[str]:
    """Start a Redis server and return its URL."""
    with tempfile.TemporaryDirectory(prefix="bench-redis-") as folder:
        socket = Path(folder) / "redis.sock"
        words = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + STARTS_S
            while not socket.exists() and time.monotonic() < until:
                time.sleep(0.02)
            yield f"unix://{socket}"
        finally:
            process.kill()
            process.wait()


def read_cpu_us(server: Server) -> float:
    """Return the CPU time of a server and its workers, in microseconds."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    total = 0.0
    for pid in (str(server.pid), *children):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) * TICK_US
    return total


def measure_calls(row: Row, server: Server, requests: int) -> None:
    """Measure one round: a short warm-up, then the calls over 64 connections."""
    asyncio.run(run(server.port, CALL, total=max(500, requests // 10), connections=64))
    before = read_cpu_us(server)
    load = asyncio.run(run(server.port, CALL, total=requests, connections=64))
    if load.bad:
        raise SystemExit(f"{load.bad} of {load.done} answers were not 200")
    row.cpu_us.append((read_cpu_us(server) - before) / load.done)
    row.per_s.append(load.done / load.seconds)


def compare_servers(kind: str, url: str, *, requests: int, rounds: int) -> tuple[dict[str, Row], list[Ratio]]:
    """Measure a free answer from memory, counted by the limits: in process, in Redis, and by two workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-instances-")))
        world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))
        shared = {"TOOLSERVER_REDIS_URL": stack.enter_context(redis())}
        database = {"TOOLSERVER_DATABASE_URL": stack.enter_context(new_schema(url))}

        def serve(name: str, *flags: str, **more: str) -> Server:
            words = ("serve", "--server", kind, "--port", "0", "--ready-json", "--data-dir", str(folder / name), *flags)
            via = {"TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}", "TOOLSERVER_LOGS__LEVEL": "error"}
            prefix = {"TOOLSERVER_SCALING__REDIS_PREFIX": f"{name}:", "TOOLSERVER_METRICS__PORT": "0"}
            server = stack.enter_context(
                started(python("-m", "toolserver", *words), core=None, **COUNTED, **via, **prefix, **more)
            )
            for _ in range(20):  # so that every worker has the answer
                urlopen(f"http://127.0.0.1:{server.port}/api/btc-price").read()
            return server

        keys = {"TOOLSERVER_SCALING__KEYS_DIR": str(folder / "keys")}
        subprocess.run(
            python("-m", "toolserver", "keys", "make", str(folder / "keys")), check=True, capture_output=True
        )
        servers = {
            "limits in process": serve("alone"),
            "limits in Redis": serve("redis", **shared),
            "one on PostgreSQL and Redis": serve("one", **shared, **database, **keys),
            "two workers on PostgreSQL and Redis": serve("two", "--workers", "2", **shared, **database, **keys),
        }
        rows = {name: Row(name) for name in servers}
        for _ in range(rounds):
            for name, server in servers.items():
                measure_calls(rows[name], server, requests)
    more_us = rows["limits in Redis"].cpu - rows["limits in process"].cpu
    share = rows["one on PostgreSQL and Redis"].cpu / rows["two workers on PostgreSQL and Redis"].cpu
    return rows, [
        Ratio(f"{kind}: µs of CPU more for a call that is counted in Redis", more_us, 25, at_most=True),
        Ratio(f"{kind}: calls a second of server CPU, two workers / one", share, 0.85),
    ]


def show_ledgers(found: dict[str, list[Charged]], commit_ms: float) -> None:
    """Print the table of the ways of charging."""
    print(f"PostgreSQL; a commit of one connection takes {commit_ms:.2f} ms\n")
    print(f"{'':28} {'charges/s':>10} {'CPU µs':>8} {'p99 ms':>8}")
    for name, rows in found.items():
        rate, cpu, p99 = (statistics.median(values) for values in zip(*map(_figures, rows), strict=True))
        print(f"{name:28} {rate:10,.0f} {cpu:8.0f} {p99:8.1f}")


def _figures(each: Charged) -> tuple[float, float, float]:
    return each.per_s, each.cpu_us, each.p99_ms


def show_servers(kind: str, rows: dict[str, Row]) -> None:
    """Print the table of the servers."""
    print(f"\n{kind}, 64 connections\n\n{'':40} {'CPU µs/call':>12} {'calls/s':>10}")
    for name, row in rows.items():
        print(f"{name:40} {row.cpu:12.1f} {row.rate:10,.0f}   [{min(row.cpu_us):.1f}..{max(row.cpu_us):.1f}]")


def has_postgres(url: str) -> bool:
    """Return True if a PostgreSQL answers at this URL."""

    async def ask() -> None:
        await (await asyncpg.connect(url, timeout=3)).close()

    try:
        asyncio.run(ask())
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    return True


def bars_of_ledger(charged: dict[str, list[Charged]]) -> list[Bar]:
    """Return the bars of row 10."""
    rate = {name: statistics.median(each.per_s for each in rows) for name, rows in charged.items()}
    pool = rate["one, 1,000 accounts"] / rate["one, through a pool"]
    hot = rate["three, one account"] / rate["three, 1,000 accounts"]
    return [
        Bar(10, "PostgreSQL ledger / a transaction a call through a pool, rate", pool, 6, "x", at_least=True),
        Bar(10, "three processes: one account / 1,000 accounts, rate", hot, 0.9, "x", at_least=True),
    ]


def judge(effort: Effort) -> Verdict:
    """Judge rows 10 and 26. Raises NotHere without PostgreSQL or Redis."""
    if not has_postgres(DATABASE):
        raise NotHere("no PostgreSQL answers at TEST_DATABASE_URL")
    if not shutil.which("redis-server"):
        raise NotHere("redis-server is not here")
    charged, _ = compare_ledgers(DATABASE, seconds=effort.seconds, rounds=effort.rounds)
    found = Verdict(bars_of_ledger(charged))
    lines, calls = [], []
    for name, each in charged.items():
        rates = [row.per_s for row in each]
        lines.append(Line(name, statistics.median(rates), min(rates), max(rates)))
    for kind in effort.servers:
        rows, (redis_us, workers) = compare_servers(kind, DATABASE, requests=effort.requests, rounds=effort.rounds)
        found.bars += [
            Bar(26, "a call that is counted in Redis: more CPU", redis_us.found, redis_us.target, "µs", server=kind),
            Bar(26, "calls for a second of CPU, two workers / one", workers.found, workers.target, "x", True, kind),
        ]
        calls += lines_of(rows.values(), kind)
    note = "64 callers of each process; a charge is durable before it is answered."
    found.tables += [
        Table("shared-ledger", "The ledger in PostgreSQL", "charges/s", lines, note, True, ("one, through a pool",)),
        Table("shared-calls", "A cached answer by what is shared: CPU of all processes", "µs a call", calls),
    ]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="bench.instances")
    parser.add_argument("--database", default=DATABASE, help="a PostgreSQL in which schemas may be made")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    commit_ms = measure_commit_ms(given.database)
    charged, ratios = compare_ledgers(given.database, seconds=given.seconds, rounds=given.rounds)
    show_ledgers(charged, commit_ms)
    told: dict[str, Any] = {
        "commit_ms": commit_ms,
        "ledger": {name: [*map(asdict, rows)] for name, rows in charged.items()},
    }
    for kind in given.server or SERVERS:
        rows, more = compare_servers(kind, given.database, requests=given.requests, rounds=given.rounds)
        show_servers(kind, rows)
        told[kind] = {name: asdict(row) for name, row in rows.items()}
        ratios += more
    print("\n" + "\n".join(ratio.line() for ratio in ratios), flush=True)
    if given.json:
        given.json.write_text(json.dumps(told | {"ratios": [*map(asdict, ratios)]}, indent=2), encoding="utf-8")
    return 0 if all(ratio.is_met for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
