"""Charges with receipts over each store, for the tests of charging."""

from contextlib import asynccontextmanager

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.postgres import terms_of
from toolserver.calls.charge_store import ReceiptedCharges, SqlChargeStore
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.ledger.store import FILE, SqlLedger, open_ledger
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sign import Body, Sale, receipt_id
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import in_memory

RICH, POOR = token(1), token(2)


class Stand:
    """Charges with receipts over one store, and how to make them."""

    def __init__(self, ledger, evidence, store, stored, clock, keys):
        self.ledger, self.evidence, self._stored, self.clock, self.keys = ledger, evidence, stored, clock, keys
        self.store, self.charges = store, ReceiptedCharges(store, evidence.issuer, clock)

    async def buy(self, call_id=None, *, who=RICH, sale=None, keyed=None):
        call_id = call_id or new_call_id()

        def describe(settled):
            owner = token_hash(who).hex()
            body = Body("0" * 64, 5)
            return Sale(call_id, owner, "/api/pro/x", "GET /x", 2, settled.charged, settled.remaining, body=body)

        return await self.charges.charge(call_id, who, 2, endpoint="/api/pro/x", sale=sale or describe, keyed=keyed)

    async def free(self, call_id, *, who=RICH):
        """A call that failed and was not charged."""
        owner = token_hash(who).hex()
        await self.evidence.sign(Sale(call_id, owner, "/api/pro/x", "GET /x", 2, 0, 98, reason="5xx", status=500))

    async def has_receipt(self, call_id):
        return await self._stored.receipt(receipt_id(call_id)) is not None


@asynccontextmanager
async def _open_ledger(folder, engine, clock):
    if engine == "memory":
        async with in_memory() as rows:
            yield SqlLedger(rows, clock)
    elif engine == "sqlite":
        async with open_ledger(folder / FILE, clock) as ledger:
            yield ledger
    else:
        async with open_postgres(terms_of(folder)) as store:
            yield SqlLedger(store, clock)


@asynccontextmanager
async def open_stand(folder, engine="sqlite"):
    clock = ManualClock(START)
    async with _open_ledger(folder, engine, clock) as ledger:
        await ledger.mint(RICH, 100, cause="rich")
        await ledger.mint(POOR, 1, cause="poor")
        stored = SqlReceiptStore(ledger.file)
        evidence = ReceiptService(stored, folder, clock=clock, issuer=Issuer("https://data.example", "data.example"))
        keys = SqlIdempotencyStore(ledger.file, clock)
        yield Stand(ledger, evidence, SqlChargeStore(ledger, evidence.log.buckets), stored, clock, keys)
