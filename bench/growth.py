"""`python -m bench.growth [--long] [--save FILE.json]`: measure whether a call costs more as the data grow.

The same free and paid calls are measured on services with more and more tokens, cached answers, subscriptions and
receipts. All services of a row run in this process on one simulated world, and are measured in turn, so that each sees
the same load of the machine. CPU is that of the process, the ledger's writer included; 16 callers share its commits.
`python -m bench.figures --growth FILE.json` draws the pictures.
"""

import argparse
import asyncio
import json
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from bench.in_process import FREE, SOLD, Scope, request, settings_for
from bench.month import make_month, write_month
from bench.move import write_evidence
from bench.processes import python, started
from toolserver.app import Service, ServiceParts
from toolserver.money.ledger.store import FILE
from toolserver.sql.migrate import migrate
from toolserver.webhooks import store
from toolserver.webhooks.records import SLOT_MS, WebhookSubscription

CALLS, CALLERS, ROUNDS = 1600, 16, 7
FLAT = 1.3  # the most that a call may cost at the last size, in times of the first
ASKED = "/api/find-tools"
IDLE_S, IDLE = 1.0, 0.06  # a service is ready when it uses less than this share of a core for so long


class Axis(NamedTuple):
    """What grows: its sizes, the further ones of the long form, and how a data directory and a service get them."""

    name: str
    what: str
    sizes: tuple[int, ...]
    long: tuple[int, ...]
    fill: Callable[[int, Path], None]


def fill_tokens(count: int, folder: Path) -> None:
    """Make a ledger with this number of tokens."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
        migrate(db)
        db.execute("BEGIN")
        accounts = ((number, "token", 100, 0, 0) for number in range(4, 4 + count))
        db.executemany("INSERT INTO account(id, kind, credits, debits, pending) VALUES(?,?,?,?,?)", accounts)
        tokens = ((f"{number:064x}", number, f"acct_{number:032x}", 1) for number in range(4, 4 + count))
        db.executemany("INSERT INTO token(hash, account, ref, issued_at) VALUES(?,?,?,?)", tokens)
        db.execute("COMMIT")


def fill_subscriptions(count: int, folder: Path) -> None:
    """Make a ledger with this number of active subscriptions, due when they were measured."""
    now = time.time_ns() // 1_000_000
    rows = (
        WebhookSubscription(
            id=f"wh_{number:016x}",
            owner=f"{number // 5:064x}",
            payer=f"{number // 5:064x}",
            account=f"acct_{number // 5:032x}",
            endpoint="world-deltas",
            url=f"https://hooks{number}.example/hook",
            host=f"hooks{number}.example",
            params=b"{}",
            sealed=b"x" * 120,
            created_at=now - number % SLOT_MS,
            due_at=now + SLOT_MS - 50_000,
        )
        for number in range(count)
    )
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
        migrate(db)
        db.execute("BEGIN")
        db.executemany(store.ADD_SUBSCRIPTION, rows)
        db.execute("COMMIT")


def fill_receipts(count: int, folder: Path) -> None:
    """Make a ledger with this number of calls and their receipts."""
    books = make_month(count, max(10, count // 100))
    write_month(books, folder / FILE)
    write_evidence(books, folder / FILE)


def fill_answers(count: int, folder: Path) -> None:
    """Make an empty ledger. The answers are asked for in `measure_axis`."""
    fill_tokens(10, folder)


AXES = (
    Axis("tokens", "tokens", (100, 10_000), (1_000_000,), fill_tokens),
    Axis("answers", "argument sets asked for", (1_000, 10_000), (100_000,), fill_answers),
    Axis("subscriptions", "subscriptions", (100, 10_000), (100_000,), fill_subscriptions),
    Axis("receipts", "receipts", (1_000, 10_000), (100_000, 1_000_000), fill_receipts),
)


class Measured(NamedTuple):
    """What one call took at one size: µs of CPU, and the 99th percentile of waiting in ms."""

    cpu_us: float
    p99_ms: float


def _listen() -> Callable[[], Any]:
    """Return what a call receives: an empty body, and then nothing, from a client that stays connected."""
    events = iter([{"type": "http.request", "body": b""}])

    async def receive() -> dict[str, Any]:
        if (event := next(events, None)) is None:
            await asyncio.sleep(3600)
            raise AssertionError("the client has left")
        return event

    return receive


async def drive(app: Any, scopes: Sequence[Scope], calls: int) -> Measured:
    """Make calls by several callers at once. Raises SystemExit for an answer that is not 200."""
    turns, waits, seen = cycle(scopes), list[float](), set[int]()

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            seen.add(event["status"])

    async def caller() -> None:
        for _ in range(calls // CALLERS):
            began = time.perf_counter()
            await app(next(turns), _listen(), send)
            waits.append(time.perf_counter() - began)

    before = time.process_time()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    spent = time.process_time() - before
    if seen != {200}:
        raise SystemExit(f"{scopes[0]['path']}: answers were {seen}")
    return Measured(spent / len(waits) * 1e6, statistics.quantiles(waits, n=100)[98] * 1e3)


async def until_idle() -> None:
    """Wait until what services do at their start is done, such as the check of every row."""
    while True:
        before = time.process_time()
        await asyncio.sleep(IDLE_S)
        if time.process_time() - before < IDLE * IDLE_S:
            return


async def measure_axis(axis: Axis, sizes: Sequence[int], folder: Path, via: str) -> dict[str, Any]:
    """Measure both calls at each size in turn, and return the medians."""
    async with AsyncExitStack() as stack:
        kinds: dict[str, list[tuple[Any, list[Scope]]]] = {"free": [], "paid": []}
        for size in sizes:
            place = folder / f"{axis.name}-{size}"
            place.mkdir(mode=0o700)
            (place / "simulated-world").touch()
            axis.fill(size, place)
            settings = settings_for(place, via, enabled=False)
            parts = ServiceParts(base_url="http://127.0.0.1", background=False, deliver=axis.name == "subscriptions")
            service = await stack.enter_async_context(Service.build(settings, parts))
            app, token = service.web_app(), f"svc_live_{secrets.token_hex(32)}"
            await service.money.ledger.mint(token, 10**7, cause="bench")
            free = [request(FREE)]
            if axis.name == "answers":
                free = [request(ASKED) | {"query_string": f"q=word{number}".encode()} for number in range(size)]
                await drive(app, free, size // CALLERS * CALLERS)
                free = free[-500:]
            paid = [request(SOLD, (b"authorization", b"Bearer " + token.encode()))]
            kinds["free"].append((app, free))
            kinds["paid"].append((app, paid))
            print(f"{axis.name} {size:,}: made", file=sys.stderr, flush=True)
        found: dict[str, Any] = {"what": axis.what, "sizes": list(sizes)}
        for name, sides in kinds.items():
            for app, scopes in sides:
                await drive(app, scopes, CALLS)
            await until_idle()
            rounds = [[await drive(app, scopes, CALLS) for app, scopes in sides] for _ in range(ROUNDS)]
            for figure in Measured._fields:
                medians = [statistics.median(getattr(each[at], figure) for each in rounds) for at in range(len(sides))]
                found[f"{name}_{figure}"] = medians
    return found


async def measure(long: bool, names: Sequence[str]) -> dict[str, Any]:
    """Measure every axis, or those with these names, on a world of their own."""
    found: dict[str, Any] = {}
    for axis in AXES:
        if axis.name in names:
            with (
                tempfile.TemporaryDirectory(prefix="toolserver-bench-") as folder,
                started(python("-m", "toolserver", "world", "--port", "0")) as world,
            ):
                sizes = axis.sizes + (axis.long if long else ())
                found[axis.name] = await measure_axis(axis, sizes, Path(folder), f"http://127.0.0.1:{world.port}")
    return found


def ratios_of(axis: dict[str, Any]) -> dict[str, float]:
    """Return for each figure its value at the last size in times of that at the first."""
    return {f"{name}_{figure}": axis[f"{name}_{figure}"][-1] / axis[f"{name}_{figure}"][0] for name in ("free", "paid")
            for figure in Measured._fields}  # fmt: skip


def main() -> None:
    """Print the figures, and exit with 1 where the CPU of a call grows."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--long", action="store_true", help="up to a million tokens and receipts: half an hour")
    parser.add_argument("--only", action="append", choices=[axis.name for axis in AXES])
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    found = asyncio.run(measure(asked.long, asked.only or [axis.name for axis in AXES]))
    grown = []
    for axis in found.values():
        print(f"{axis['what']}: {', '.join(f'{size:,}' for size in axis['sizes'])}")
        for name, ratio in ratios_of(axis).items():
            values = ", ".join(f"{value:.3g}" for value in axis[name])
            print(f"  {name:12} {values}: {ratio:.2f} times")
            if name.endswith("cpu_us") and ratio > FLAT:
                grown.append(f"{name} by {axis['what']}")
    if asked.save:  # beside what runs with --only have saved
        saved = json.loads(asked.save.read_text(encoding="utf-8")) if asked.save.exists() else {}
        asked.save.write_text(json.dumps(saved | found, indent=1) + "\n", encoding="utf-8")
    print(f"grows: {', '.join(grown) or 'nothing'}")
    sys.exit(bool(grown))


if __name__ == "__main__":
    main()
