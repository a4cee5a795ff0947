"""Measure row 22; `python -m bench.disk [--calls N] [--to URL]`: the disk space of a paid call.

For the row, the service runs in this process on the simulated world and sells a cached answer several thousand times
over MCP. The command charges as many calls as it is told, with their receipts, in a file or with `--to` in an empty
database or schema; a month later they are archived and removed. It prints the bytes of a call in each table and index,
before and after. A server has vacuumed its tables by then, as it does by itself after a while.
"""

import argparse
import asyncio
import json
import secrets
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.in_process import message_request, settings_for
from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.misses import ask
from bench.processes import python, started
from bench.shared_ledger import ROW_KEY
from toolserver.app import Service, ServiceParts
from toolserver.calls.charge_store import ReceiptedCharges, SqlChargeStore
from toolserver.clock import ManualClock, SystemClock
from toolserver.core.caller import token_hash
from toolserver.money.books.months import MonthCloser, MonthPruner
from toolserver.money.ledger.protocol import Settlement
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.money.receipts.keys import RECEIPT_KEYS, KeyRing
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sign import Body, Sale
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.ledger_place import LedgerPlace, open_place, read_place
from toolserver.sql.postgres import PostgresConnection, PostgresTerms

CALLS, MOST_BYTES = 4000, 700
PATH = "/api/pro/briefing"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_briefing", "arguments": {}}}


def used_bytes(path: Path) -> dict[str, int]:
    """Return the bytes of the pages that each table and index uses. Free pages do not count."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        pages, free = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        try:
            return dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall())
        except sqlite3.OperationalError:  # this build of SQLite cannot report the size of each table
            return {"all tables": (pages - free) * size}


async def sell(folder: Path, via: str, calls: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes used before and after this number of paid calls."""
    token = f"svc_live_{secrets.token_hex(32)}"
    bearer, body = (b"authorization", f"Bearer {token}".encode()), json.dumps(CALL).encode()
    parts = ServiceParts(base_url="http://127.0.0.1", background=False)
    async with Service.build(settings_for(folder, via, enabled=False), parts) as service:
        await service.money.ledger.mint(token, 10**9, cause="bench")
        app = service.web_app()
        await ask(app, message_request(bearer), body)
        before = used_bytes(folder / FILE)
        for _ in range(calls // 50):
            await asyncio.gather(*(ask(app, message_request(bearer), body) for _ in range(50)))
        balance = await service.money.ledger.balance(token)
    sold = (10**9 - balance) // service.registry["premium_briefing"].credits - 1
    if sold != calls // 50 * 50:
        raise SystemExit(f"{sold} calls were charged")
    return before, used_bytes(folder / FILE)


def judge(effort: Effort) -> Verdict:
    """Sell, and measure the file."""
    with (
        tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name,
        started(python("-m", "toolserver", "world", "--port", "0")) as world,
    ):
        before, after = asyncio.run(sell(Path(name), f"http://127.0.0.1:{world.port}", CALLS))
    added = {name: (after[name] - before.get(name, 0)) / CALLS for name in after}
    lines = [Line(name, each, each, each) for name, each in sorted(added.items(), key=lambda i: -i[1]) if each >= 1]
    bars = [Bar(22, "a paid call, while it is kept whole", sum(added.values()), MOST_BYTES, "bytes")]
    return Verdict(bars, [Table("disk", "What a paid call leaves on the disk", "bytes a call", lines)])


NOW = datetime(2027, 1, 15, tzinfo=UTC)
LATER = int(datetime(2027, 6, 2, tzinfo=UTC).timestamp() * 1000)
TOKENS, GROUP = 1_000, 256
_SERVER = """SELECT c.relname::text, CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid) ELSE pg_relation_size(c.oid) END
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'i')"""


def read_bytes(place: LedgerPlace) -> dict[str, int]:
    """Return the bytes of each table and index of a ledger."""
    if isinstance(place, Path):
        return used_bytes(place)
    return read_place(place, lambda db: {name: int(size) for name, size in db.execute(_SERVER)})


async def charge_calls(place: LedgerPlace, folder: Path, calls: int, since: datetime) -> None:
    """Charge calls to the accounts in turn, each with its receipt, spread over ten days."""
    clock = ManualClock(since)
    tokens = [f"svc_live_{number:064x}" for number in range(TOKENS)]
    async with open_place(place) as store:
        ledger = SqlLedger(store, clock)
        issuer = Issuer("https://data.example", "data.example")
        evidence = ReceiptService(SqlReceiptStore(store), folder, clock=clock, issuer=issuer)
        charges = ReceiptedCharges(SqlChargeStore(ledger, evidence.log.buckets), evidence.issuer, clock)
        for token in tokens:
            await ledger.mint(token, 10**9, cause=token)

        async def charge(number: int) -> None:
            token, at = tokens[number % TOKENS], int(clock.time() * 1000) + number % GROUP
            call_id = f"call_{at:012x}{secrets.token_hex(10)}"
            about = Sale(call_id, token_hash(token).hex(), PATH, f"GET {PATH}?number={number}", 2, 2, None)
            body = Body(secrets.token_hex(32), 900)

            def describe(settled: Settlement) -> Sale:
                return about._replace(remaining=settled.remaining, body=body, captured_at=clock.time())

            await charges.charge(call_id, token, 2, endpoint=PATH, sale=describe)
            ledger.delivered(call_id)

        for first in range(0, calls, GROUP):
            await asyncio.gather(*(charge(number) for number in range(first, min(calls, first + GROUP))))
            clock.advance(GROUP * 10 * 86_400 / calls)


def vacuum(place: LedgerPlace, table: str = "") -> None:
    """Give the space of removed rows of a server's tables back."""
    if not isinstance(place, Path):
        with closing(PostgresConnection(place)) as db:
            db.connect()
            db.run_script("SET statement_timeout = 0")
            db.run_script(f"VACUUM FULL {table}")


def print_bytes(title: str, place: LedgerPlace, before: dict[str, int], calls: int) -> None:
    """Print the bytes of a call in each table and index that grew, and their sum."""
    added = {name: (size - before.get(name, 0)) / calls for name, size in read_bytes(place).items()}
    print(f"{title}: {sum(each for each in added.values() if each > 0):.0f} bytes a call", flush=True)
    for name, each in sorted(added.items(), key=lambda pair: -pair[1]):
        if each >= 1:
            print(f"  {name:30} {each:6.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.disk")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--to", metavar="URL", help="An empty database or schema, instead of a file")
    parser.add_argument("--dir", type=Path, help="Folder to leave the ledger in")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-disk-") as name:
        folder = chosen.dir or Path(name)
        place: LedgerPlace = folder / FILE
        if chosen.to:
            place = PostgresTerms(chosen.to, connect_s=15, work_s=60, readers=1, row_key=ROW_KEY)
        first = NOW - timedelta(days=12)
        asyncio.run(charge_calls(place, folder, TOKENS, first))  # so that every table has its first pages
        before = read_bytes(place)
        asyncio.run(charge_calls(place, folder, chosen.calls, NOW))
        vacuum(place, "journal")  # whose rows last until an answer was sent
        print_bytes("kept whole", place, before, chosen.calls)
        ring = KeyRing(folder / RECEIPT_KEYS, SystemClock())
        closer = MonthCloser(place, folder / "archive", ring, "bench")
        asyncio.run(closer.close_until(None, LATER))
        MonthPruner(place, closer.folder, ring).prune(3, LATER)
        vacuum(place)
        print_bytes("archived", place, before, chosen.calls)


if __name__ == "__main__":
    main()
