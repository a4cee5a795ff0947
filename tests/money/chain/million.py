"""Reads a million transfers to 100,000 addresses from zero, off a node that has the limits of real ones.

    python -m tests.money.chain.million --transfers 1000000 --addresses 100000 --blocks 200000 --quotes 1000000

The node is a process of its own. The figures are those of the reading process: seconds, rows, memory after each tenth
of the transfers, and the processor time of readings with nothing new. `--quotes` adds quotes that nobody paid, half of
them still open: a second ledger with them is read after the one without. A small form
of it runs with the tests.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from tests.money.chain.log_node import BLOCK_S, GENESIS
from tests.money.chain.month import scanner_of
from tests.money.purchases.parts import Desk, Server, desk
from tests.ports import reserve_port
from toolserver.clock import ManualClock
from toolserver.money.chain.scanner import COLD_S
from toolserver.money.chain.sql_chain_book import DAY_MS
from toolserver.sql.connection import SqlConnection, insert

IDLE_LOOKS = 30  # ten minutes of readings with nothing new
PAGE = 1_000  # quotes in one transaction


def add_quotes(db: SqlConnection, addresses: Sequence[bytes], first: int, at: int, ends_at: int) -> None:
    """Quotes that nobody claimed, one for each address. `first` is the index of the first address."""
    rows = [
        (number.to_bytes(32), address, number, 5_000_000, 250, at, ends_at)
        for number, address in enumerate(addresses, first)
    ]
    columns = "memo_hash, address, hd_index, amount, credits, created_at, expires_at, state"
    insert(db, f"INSERT INTO purchase({columns}) VALUES", [(*row, "quoted") for row in rows])


async def add_unpaid(d: Desk, quotes: int, first: int) -> None:
    """Quotes to addresses that no transfer pays: every other one has ended, the rest are open."""
    rng, now = random.Random(3), int(d.clock.time() * 1000)
    for at in range(0, quotes, PAGE):
        addresses = [rng.randbytes(20) for _ in range(min(PAGE, quotes - at))]
        begun = now - DAY_MS if at // PAGE % 2 else now - 60_000
        quoted = partial(add_quotes, addresses=addresses, first=first + at, at=begun, ends_at=begun + 1_800_000)
        await d.ledger.file.alone(quoted)


def memory_mb() -> float:
    """What this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def watch(d: Desk, transfers: int, samples: list[tuple[int, float]]) -> None:
    """Note the memory after each tenth of the transfers."""
    while True:
        await anyio.sleep(0.2)
        (count,) = (await d.rows("SELECT count(*) FROM chain_transfer"))[0]
        if count >= transfers * len(samples) / 10:
            samples.append((count, round(memory_mb(), 1)))


async def measure(folder: Path, transfers: int, count: int, blocks: int, quotes: int = 0) -> dict[str, Any]:
    """Fill a ledger and a node, read from zero, and return the figures."""
    rng = random.Random(2)
    addresses = [rng.randbytes(20) for _ in range(count)]
    names = folder / "addresses"
    names.write_text("\n".join(f"0x{address.hex()}" for address in addresses))
    port = reserve_port()
    words = ["--port", str(port), "--addresses", str(names), "--transfers", str(transfers), "--blocks", str(blocks)]
    node = await anyio.open_process([sys.executable, "-m", "tests.money.chain.log_node", *words])
    try:
        assert node.stdout is not None
        url = (await node.stdout.receive()).decode().strip()
        async with AsyncExitStack() as stack:
            clock = ManualClock(datetime.fromtimestamp(GENESIS + (blocks + 700) * BLOCK_S, UTC))
            d = await stack.enter_async_context(desk(folder, [Server()], clock=clock))
            ended = partial(
                add_quotes, addresses=addresses, first=0, at=GENESIS * 1000, ends_at=GENESIS * 1000 + 1_800_000
            )
            await d.ledger.file.alone(ended)
            await add_unpaid(d, quotes, first=count)
            scanner, pool = scanner_of(d, url)
            stack.push_async_callback(pool.aclose)
            return await _read(d, scanner, transfers)
    finally:
        node.kill()
        await node.aclose()


async def _read(d: Desk, scanner: Any, transfers: int) -> dict[str, Any]:
    samples: list[tuple[int, float]] = []
    began, cpu = time.monotonic(), time.process_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, d, transfers, samples)
        await scanner.look()
        tasks.cancel_scope.cancel()
    figures = {"seconds": round(time.monotonic() - began, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    (rows, summed) = (await d.rows("SELECT count(*), sum(amount) FROM chain_transfer"))[0]
    dust = (await d.rows("SELECT count(*), sum(received), sum(received_amount), sum(zeros) FROM chain_dust"))[0]
    differences = (await d.rows("SELECT count(*) FROM chain_difference"))[0][0]
    cpu = time.process_time()
    for _ in range(IDLE_LOOKS):
        d.clock.advance(20)
        await scanner.look()
    idle = (time.process_time() - cpu) / (IDLE_LOOKS * 20)
    d.clock.advance(COLD_S)
    cpu = time.process_time()
    await scanner.look()
    daily = time.process_time() - cpu
    return figures | {
        "transfers": rows + int(dust[1] or 0) + int(dust[3] or 0),
        "rows": rows,
        "usd": int(summed) / 1e6,
        "dust": tuple(dust),
        "differences": differences,
        "memory_mb_by_rows": samples,
        "idle_share_of_a_core": round(idle, 5),
        "daily_comparison_cpu_s": round(daily, 1),
        "share_of_a_core": round(idle + daily / COLD_S, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transfers", type=int, default=1_000_000)
    parser.add_argument("--addresses", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=200_000)
    parser.add_argument("--quotes", type=int, default=0)
    given = parser.parse_args()
    for quotes in dict.fromkeys((0, given.quotes)):
        with tempfile.TemporaryDirectory() as folder:
            figures = anyio.run(measure, Path(folder), given.transfers, given.addresses, given.blocks, quotes)
        print(json.dumps({"quotes": quotes} | figures), flush=True)


if __name__ == "__main__":
    main()
