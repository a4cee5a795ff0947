"""Measure row 22: the disk space of a paid call: the charge, the receipt, and its share of every index.

The service runs in this process on the simulated world and sells a cached answer several thousand times over MCP.
"""

import asyncio
import json
import secrets
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from bench.in_process import message_request, settings_for
from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.misses import ask
from bench.processes import python, started
from toolserver.app import Service, ServiceParts
from toolserver.money.ledger.store import FILE

CALLS, MOST_BYTES = 4000, 700
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
