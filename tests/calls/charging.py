"""Charges with receipts over each store, for the tests of charging."""

from contextlib import asynccontextmanager, nullcontext

from tests.calls.parts import START
from tests.ledger.ledgers import token
from toolserver import ids
from toolserver.calls.charge_store import MemoryChargeStore, SqliteChargeStore
from toolserver.calls.charge_with_receipt import ReceiptedCharges
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.ledger.memory import MemoryLedger
from toolserver.ledger.sqlite import FILE, open_ledger
from toolserver.receipts.memory import MemoryReceiptStore
from toolserver.receipts.service import ReceiptService
from toolserver.receipts.sign import Body, Sale, receipt_id
from toolserver.receipts.sqlite import SqliteReceiptStore

RICH, POOR = token(1), token(2)


class Stand:
    """Charges with receipts over one store, and how to make them."""

    def __init__(self, ledger, evidence, store, stored, clock):
        self.ledger, self.evidence, self._stored = ledger, evidence, stored
        self.charges = ReceiptedCharges(store, evidence, clock)

    async def buy(self, call_id=None, *, who=RICH, sale=None):
        call_id = call_id or ids.call_id()

        def describe(settled):
            owner = token_hash(who).hex()
            body = Body("0" * 64, 5)
            return Sale(call_id, owner, "/api/pro/x", "GET /x", 2, settled.charged, settled.remaining, body=body)

        return await self.charges.charge(call_id, who, 2, endpoint="/api/pro/x", sale=sale or describe)

    async def has_receipt(self, call_id):
        return await self._stored.receipt(receipt_id(call_id)) is not None


@asynccontextmanager
async def open_stand(folder, engine="sqlite"):
    clock = ManualClock(START)
    async with open_ledger(folder / FILE, clock) if engine == "sqlite" else nullcontext(MemoryLedger(clock)) as ledger:
        await ledger.mint(RICH, 100, cause="rich")
        await ledger.mint(POOR, 1, cause="poor")
        if engine == "sqlite":
            stored, store = SqliteReceiptStore(ledger.file), SqliteChargeStore(ledger)
        else:
            stored = MemoryReceiptStore()
            store = MemoryChargeStore(ledger, stored)
        evidence = ReceiptService(stored, folder, clock=clock, base_url="https://data.example", service="data.example")
        yield Stand(ledger, evidence, store, stored, clock)
