"""`python -m bench.years [--calls N] [--names N] [--to URL]`: measure sales beside a year of calls, and beside the
names of all calls that were ever removed.

Two ledgers are filled, the first with a tenth of the calls and names of the second: a file each, or with `--to` a
database each, made on the server. Rows are inserted directly, as a charge and its receipt leave them, spread over
twelve months; names are those of the years before. Then both sell in turn, by 64 callers at once, and look up names
that were removed and names that were not.
"""

import argparse
import asyncio
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.disk import read_bytes
from toolserver.clock import SystemClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.ledger.sql_removed_names import SIZE, find_months
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.sql.connection import NUMBERS, insert, is_shared
from toolserver.sql.ledger_place import LedgerPlace, open_place, read_place
from toolserver.sql.migrate import migrate
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import migrate_server

CHARGES, CALLERS, ROUNDS, BUYERS = 1_024, 64, 5, 1_000
LOOK_UPS = 500
YEAR_MS = 365 * 86_400_000
PART = 500_000  # rows in a transaction
FIRST_ACCOUNT = 4
_AT = f"{{since}} + (n * {YEAR_MS}) / {{calls}}"
_OF_FILE = {
    "numbers": "(WITH RECURSIVE each(n) AS (VALUES({first}) UNION ALL SELECT n + 1 FROM each WHERE n + 1 < {last})"
    " SELECT n FROM each)",
    "name": f"printf('%012x%020x', {_AT}, n)",
    "bytes": "unhexed({})",
    "blob": "zeroblob({})",
}
_OF_SERVER = {
    "numbers": "generate_series(CAST({first} AS bigint), {last} - 1) AS each(n)",
    "name": f"lpad(to_hex({_AT}), 12, '0') || lpad(to_hex(n), 20, '0')",
    "bytes": "decode({}, 'hex')",
    "blob": "decode(repeat('00', {}), 'hex')",
}
_ACCOUNT = f"{FIRST_ACCOUNT} + n % {BUYERS}"
FACTS, SIGNATURE = 100, 64  # bytes in a receipt


class Sold(NamedTuple):
    """What sales took: µs of each on average, the 99th percentile of the wait in ms; and the µs of a look-up."""

    each_us: float
    p99_ms: float
    look_up_us: float


def fill(db: Any, calls: int, names: int, since: int) -> None:
    """Fill an empty ledger with calls of the year from `since` (epoch ms) on, and removed names from before it."""
    words = _OF_SERVER if is_shared(db) else _OF_FILE
    insert(
        db,
        "INSERT INTO account(id, kind, credits, debits, pending) VALUES",
        [(FIRST_ACCOUNT + number, "token", 10**9, 0, 0) for number in range(BUYERS)],
    )
    insert(
        db,
        "INSERT INTO token(hash, account, ref, issued_at) VALUES",
        [(token_hash(_token(n)).hex(), FIRST_ACCOUNT + n, f"acct_{n:032x}", since) for n in range(BUYERS)],
    )
    rows = {
        "transfer": f"n + 1, 'posted', {_ACCOUNT}, 2, 2, NULL, NULL, {_AT}",
        "reservation": f"'call_' || {words['name']}, {_ACCOUNT}, 2, 'posted', NULL, '/api/pro/x', '', n + 1, {_AT},"
        f" {_AT}, NULL, NULL",
        "packed_receipt": f"{_AT}, 1, {words['bytes'].format(words['name'])}, {words['blob'].format(32)},"
        f" {words['blob'].format(FACTS)}, {words['blob'].format(SIGNATURE)}",
    }
    for table, columns in rows.items():
        for first in range(0, calls, PART):
            text = f"INSERT INTO {table} SELECT {columns} FROM {words['numbers']}"
            db.execute(text.format(first=first, last=min(calls, first + PART), since=since, calls=calls))
    blocks = list_blocks(names, since)
    while part := [block for _, block in zip(range(64), blocks, strict=False)]:
        insert(db, "INSERT INTO removed_block VALUES", part)
    if is_shared(db):
        db.execute(f"SELECT setval('ledger_number', {(calls // NUMBERS + 2) * NUMBERS})")


def list_blocks(names: int, until: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield blocks with this number of names, a millisecond between two of them, the last ones at `until`."""
    for first in range(until - names, until, SIZE):
        count = min(SIZE, until - first)
        drawn = secrets.token_bytes(10 * count)
        block = b"".join(
            (first + each).to_bytes(6) + drawn[10 * each : 10 * each + 10] + b"\x5f\x00" for each in range(count)
        )
        yield block[:16], block


def _token(number: int) -> str:
    return f"svc_live_{number:064x}"


def make(place: LedgerPlace, calls: int, names: int) -> None:
    """Make and fill a ledger, and print how long it took and what it takes."""
    began, since = time.perf_counter(), int(time.time() * 1000) - YEAR_MS
    if isinstance(place, Path):
        place.parent.mkdir(parents=True)
        with closing(sqlite3.connect(place, isolation_level=None)) as db:
            db.create_function("unhexed", 1, bytes.fromhex, deterministic=True)
            db.execute("PRAGMA synchronous=OFF")
            migrate(db)
            db.execute("BEGIN")
            fill(db, calls, names, since)
            db.execute("COMMIT")
    else:
        with closing(PostgresConnection(place)) as server:
            migrate_server(server)
            server.run_script("SET statement_timeout = 0")
            fill(server, calls, names, since)
            server.run_script("VACUUM ANALYZE")
    took, sizes = time.perf_counter() - began, read_bytes(place)
    whole = sum(size for name, size in sizes.items() if not _is_of_names(name)) / calls
    kept = sum(size for name, size in sizes.items() if _is_of_names(name)) / names
    print(f"{calls} calls, {names} names, in {took:.0f} s: {whole:.0f} bytes a call, {kept:.1f} a name", flush=True)


def _is_of_names(table: str) -> bool:
    return table.startswith("removed_block")


async def sell(place: LedgerPlace) -> Sold:
    """Charge calls by many callers at once, and then look up names."""
    waits, numbers = list[float](), iter(range(CHARGES))
    async with open_place(place) as store:
        ledger = SqlLedger(store, SystemClock())

        async def caller() -> None:
            for number in numbers:
                began = time.perf_counter()
                await ledger.charge(new_call_id(), _token(number % BUYERS), 2, endpoint="/api/pro/x")
                waits.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        took = time.perf_counter() - began
    looked = read_place(place, look_up)
    return Sold(took / CHARGES * 1e6, _p99(waits) * 1e3, statistics.median(looked) * 1e6)


def look_up(db: Any) -> list[float]:
    """Return the seconds of each look-up of a name, in turn one that was removed and one that was not."""
    names = [bytes(first) for (first,) in db.execute("SELECT first FROM removed_block LIMIT 5000")]
    took = []
    for turn in range(LOOK_UPS):
        known = secrets.choice(names)
        name = known if turn % 2 else known[:6] + secrets.token_bytes(10)
        began = time.perf_counter()
        found = find_months(db, [name])
        took.append(time.perf_counter() - began)
        if bool(found) != bool(turn % 2):
            raise SystemExit("a name was not found, or one was that nobody removed")
    return took


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.years")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--names", type=int, default=10_000_000)
    parser.add_argument("--to", metavar="URL", help="A server, on which two databases are made")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-years-") as name:
        places: list[LedgerPlace] = [Path(name) / size / FILE for size in ("tenth", "whole")]
        if chosen.to:
            places = list(make_databases(chosen.to))
        for part, place in zip((10, 1), places, strict=True):
            make(place, chosen.calls // part, chosen.names // part)
        turns = [[asyncio.run(sell(place)) for place in places] for _ in range(ROUNDS)]
        for what in Sold._fields:
            tenth, whole = (statistics.median(getattr(turn[side], what) for turn in turns) for side in (0, 1))
            print(f"{what}: {tenth:.3g} with a tenth, {whole:.3g} with all: {whole / tenth:.2f}")


def make_databases(url: str) -> Iterator[PostgresTerms]:
    """Make a database of each size."""
    base = url.rpartition("/")[0]
    for size in ("tenth", "whole"):
        with closing(PostgresConnection(PostgresTerms(url, connect_s=15, work_s=60))) as db:
            db.connect()
            db.run_script(f"CREATE DATABASE years_{size}_{secrets.token_hex(4)}")
            made = db.execute("SELECT max(oid) FROM pg_database").fetchone()[0]
            name = db.execute("SELECT datname::text FROM pg_database WHERE oid=?", (made,)).fetchone()[0]
        yield PostgresTerms(f"{base}/{name}", connect_s=15, work_s=60, readers=1)


if __name__ == "__main__":
    main()
