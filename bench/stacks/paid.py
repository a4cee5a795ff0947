"""Serve paid calls: `python -m bench.stacks.paid WAY SERVER DATA_DIR`, on the world at TOOLSERVER_UPSTREAM__VIA.

Ways: `ours`; `unsigned`, the same with a constant in place of each signature; `unsynced`, the same without fsync;
`unbooked`, the same without the books: the receipt is signed, nothing is charged or stored; `usual`, books as one would
write them with aiosqlite: a transaction for each call, each statement awaited. The ready line has the funded token.
"""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import anyio

from bench.ledger import usual_charge
from toolserver.app import App, Service, ServiceParts
from toolserver.money.ledger.state import Settlement
from toolserver.money.receipts import keys
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import (
    Sale,
    SignedReceipt,
    StoredReceipt,
    core_of,
    encode,
    receipt_id,
    signing_input,
)
from toolserver.serving.listen import announce, bind_socket, freeze_startup, run_async, serve
from toolserver.settings import Settings
from toolserver.sql import sealed_file, sqlite

CREDITS = 1_000_000_000
Made = Callable[[Settlement], Sale]


class Signing:
    """Makes a receipt as our service does, without storing it."""

    def __init__(self, evidence: ReceiptService) -> None:
        self._ring = evidence._ring

    def __call__(self, sale: Sale) -> StoredReceipt:
        key, now = self._ring.current(), time.time()
        core = encode(core_of(sale, service="bench", now=now))
        signature = key.sign(signing_input(key.kid, core))
        return StoredReceipt(receipt_id(sale.call_id), sale.owner, core, key.kid, signature, int(now * 1000))


class Unbooked:
    """Charges without books."""

    def __init__(self, sign: Signing) -> None:
        self._sign = sign

    async def charge(
        self, call_id: str, token: str, credits: int, *, endpoint: str, sale: Made, keyed: None = None
    ) -> Any:
        told = Settlement(call_id, credits, CREDITS, None, "posted")
        receipt = self._sign(sale(told))
        return told, SignedReceipt(receipt.id, receipt.jws)


class Usual:
    """Charges over aiosqlite: charge and receipt in one transaction a call, under a lock."""

    def __init__(self, sign: Signing, db: aiosqlite.Connection) -> None:
        self._sign, self._db, self._turn = sign, db, asyncio.Lock()

    async def charge(
        self, call_id: str, token: str, credits: int, *, endpoint: str, sale: Made, keyed: None = None
    ) -> Any:
        async with self._turn:
            await self._db.execute("BEGIN IMMEDIATE")
            remaining = await usual_charge(self._db, call_id, token, credits, endpoint)
            told = Settlement(call_id, credits, remaining, None, "posted")
            receipt = self._sign(sale(told))
            await self._db.execute(
                "INSERT INTO receipt(id, owner, core, key, signature, at) VALUES(?,?,?,?,?,?)", tuple(receipt)
            )
            await self._db.execute("COMMIT")
        return told, SignedReceipt(receipt.id, receipt.jws)


@asynccontextmanager
async def open_charges(way: str, service: Service, path: Path) -> AsyncIterator[Any]:
    sign = Signing(service.money.evidence)
    if way == "unbooked":
        yield Unbooked(sign)
        return
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA synchronous=FULL")
        await db.execute("PRAGMA foreign_keys=ON")
        yield Usual(sign, db)


def leave_out(way: str) -> None:
    """Leave out a part of a paid call's cost, in this process."""
    if way == "unsigned":
        keys.Key.sign = lambda self, message: bytes(64)  # type: ignore[method-assign]
    elif way == "unsynced":
        synced = sqlite.connect

        def connect(*given: Any, **named: Any) -> Any:
            db = synced(*given, **named)
            db.execute("PRAGMA synchronous=OFF")
            return db

        sqlite.connect = connect
    elif way == "usual":  # its rows are not sealed, so the check of all rows would stop the service
        sealed_file.SealedFile.check = lambda self: None  # type: ignore[method-assign]


async def main(way: str, settings: Settings) -> None:
    leave_out(way)
    sock, stop = bind_socket("127.0.0.1", 0), anyio.Event()
    token = f"svc_live_{secrets.token_hex(32)}"
    async with anyio.create_task_group() as tasks:

        async def ready(service: Service) -> None:
            await service.money.ledger.mint(token, CREDITS, cause="bench")
            if way in ("unbooked", "usual"):
                tasks.start_soon(other, service)
            freeze_startup()
            announce(base_url=f"http://127.0.0.1:{sock.getsockname()[1]}", token=token)

        async def other(service: Service) -> None:
            async with open_charges(way, service, settings.data_dir / "ledger.sqlite3") as made:
                service.pipeline.paid_calls.charges = made
                await anyio.sleep_forever()

        await serve(App(settings, ServiceParts(base_url="http://127.0.0.1"), on_ready=ready), sock, settings, stop=stop)


if __name__ == "__main__":
    asked = Settings(server=sys.argv[2], port=0, data_dir=Path(sys.argv[3]))  # type: ignore[arg-type]
    run_async(asked, main, sys.argv[1], asked)
