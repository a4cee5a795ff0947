"""Measure rows 10 and 26: `python -m bench.instances [--database URL] [--seconds N] [--requests N] [--pairs N]`.

Ledger: three processes on one account against three on 1,000, group commit against a transaction for each charge, and
against one transaction a call through a pool (`bench.shared_ledger`). Service: calls for each second of CPU time of two
workers against one, and the cost of counting a call in Redis. The exit code is 1 where a bar is missed. The database
should wait for its disk (fsync = on).
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import asyncpg

from bench.cold import SERVERS
from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON
from bench.judge import Bar, Effort, NotHere, Table, Verdict, show_table, show_verdict
from bench.pairs import PIECE, Pair, Sample, Samples, measure_pairs, ratio_of, reference_of
from bench.processes import Server, python, started
from bench.rows import call_side, get, lines_of
from bench.shared_ledger import charging, measure_commit_ms, new_schema

DATABASE = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/test")
CALL = get("/api/btc-price", **BEHIND_PROXY)
STARTS_S = 20.0
COUNTED = EVERYTHING_ON | {"TOOLSERVER_LIMITS__SPACING_S": "1e-12"}  # calls of one tick are counted at one time

MOST_MORE_US, LEAST_OF_WORKERS = 25.0, 0.85
ALONE = "one, 1,000 accounts"
LEDGER = {  # name: way, processes, tokens
    ALONE: ("ours", 1, 1000),
    "three, 1,000 accounts": ("ours", 3, 1000),
    "three, one account": ("ours", 3, 1),
    "one, a transaction each": ("single", 1, 1000),
    "one, through a pool": ("pool", 1, 1000),
}


def compare_ledgers(url: str, effort: Effort) -> tuple[list[Bar], Samples]:
    """Compare ways of charging by charges a second."""
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(
                charging(name, way, url, processes=processes, tokens=tokens, seconds=effort.seconds)
            )
            for name, (way, processes, tokens) in LEDGER.items()
        }
        alone = sides[ALONE]
        pool = Pair(
            "PostgreSQL ledger / a transaction a call through a pool, rate",
            (alone, sides["one, through a pool"]),
            ratio_of("per_s"),
            often=3,
        )
        hot = Pair(
            "three processes: one account / 1,000 accounts, rate",
            (sides["three, one account"], sides["three, 1,000 accounts"]),
            ratio_of("per_s"),
            often=3,
        )
        single = Pair("grouped", (alone, sides["one, a transaction each"]), ratio_of("per_s"), is_judged=False)
        samples = asyncio.run(measure_pairs([pool, hot, single], effort.pairs))
    bars = [
        Bar.of_pair(pool, 10, 6, "x", at_least=True),
        Bar.of_pair(hot, 10, 0.7, "x", at_least=True),
    ]
    return bars, {name: samples[name] for name in LEDGER}


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


def more_us(piece: Sample, with_redis: Sample, without: Sample) -> float:
    """Return by how much CPU time a call with Redis costs more than one without, on the reference machine."""
    more = {"cpu_us": with_redis["cpu_us"] - without["cpu_us"]}
    return reference_of("cpu_us")(piece, more)


def serve_all(kind: str, url: str, stack: ExitStack) -> dict[str, Server]:
    """Start the service with limits in process, in Redis, and by one and two workers."""
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
            urlopen(f"{server.url}/api/btc-price").read()
        return server

    keys = {"TOOLSERVER_SCALING__KEYS_DIR": str(folder / "keys")}
    subprocess.run(python("-m", "toolserver", "keys", "make", str(folder / "keys")), check=True, capture_output=True)
    return {
        "limits in process": serve("alone"),
        "limits in Redis": serve("redis", **shared),
        "one on PostgreSQL and Redis": serve("one", **shared, **database, **keys),
        "two workers on PostgreSQL and Redis": serve("two", "--workers", "2", **shared, **database, **keys),
    }


def compare_servers(kind: str, url: str, effort: Effort) -> tuple[list[Bar], Samples]:
    """Compare a free answer from memory, counted by the limits: in process, in Redis, and by two workers."""
    with ExitStack() as stack:
        alone, counted, one, two = (
            call_side(name, server, CALL, effort.requests, connections=64, clock=server.cpu_us_with_workers)
            for name, server in serve_all(kind, url, stack).items()
        )
        more = Pair("a call that is counted in Redis: more CPU", (PIECE, counted, alone), more_us, often=2)
        workers = Pair("calls for a second of CPU, two workers / one", (one, two), ratio_of("cpu_us"))
        samples = asyncio.run(measure_pairs([more, workers], effort.pairs))
    bars = [
        Bar.of_pair(more, 26, MOST_MORE_US, "µs", server=kind),
        Bar.of_pair(workers, 26, LEAST_OF_WORKERS, "x", at_least=True, server=kind),
    ]
    return bars, {side.name: samples[side.name] for side in (alone, counted, one, two)}


def has_postgres(url: str) -> bool:
    """Return True if a PostgreSQL answers at this URL."""

    async def ask() -> None:
        await (await asyncpg.connect(url, timeout=3)).close()

    try:
        asyncio.run(ask())
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    return True


def judge(effort: Effort, url: str = DATABASE) -> Verdict:
    """Judge rows 10 and 26. Raises NotHere without PostgreSQL or Redis."""
    if not has_postgres(url):
        raise NotHere("no PostgreSQL answers at TEST_DATABASE_URL")
    if not shutil.which("redis-server"):
        raise NotHere("redis-server is not here")
    bars, charged = compare_ledgers(url, effort)
    found, calls = Verdict(bars), []
    for kind in effort.servers:
        bars, samples = compare_servers(kind, url, effort)
        found.bars += bars
        calls += lines_of(samples, kind)
    note = "64 callers of each process; a charge is durable before it is answered."
    lines, pool = lines_of(charged, what="per_s"), ("one, through a pool",)
    found.tables += [
        Table("shared-ledger", "The ledger in PostgreSQL", "charges/s", lines, note, True, pool),
        Table("shared-calls", "A cached answer by what is shared: CPU of all processes", "µs a call", calls),
    ]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.instances")
    parser.add_argument("--database", default=DATABASE, help="a PostgreSQL in which schemas may be made")
    parser.add_argument("--seconds", type=float, default=Effort.seconds)
    parser.add_argument("--requests", type=int, default=Effort.requests)
    parser.add_argument("--pairs", type=int, default=Effort.pairs)
    parser.add_argument("--server", choices=SERVERS, action="append")
    given = parser.parse_args(arguments)
    print(f"PostgreSQL; a commit of one connection takes {measure_commit_ms(given.database):.2f} ms")
    effort = Effort(given.requests, given.pairs, tuple(given.server or SERVERS), given.seconds)
    found = judge(effort, given.database)
    for table in found.tables:
        show_table(table)
    return 0 if show_verdict(found.bars, {}) else 1


if __name__ == "__main__":
    sys.exit(main())
