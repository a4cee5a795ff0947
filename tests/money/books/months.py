"""A ledger that sold over three months, with every end that a call can have, some of them at the turn of a month."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime

from tests.money.ledger.ledgers import opened_file, token
from tests.postgres import terms_of
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id, token_hash
from toolserver.money.books.months import MonthCloser
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.money.receipts.keys import RECEIPT_KEYS, KeyRing
from toolserver.money.receipts.month_statement import MonthSpan
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sign import Body, Sale
from toolserver.money.receipts.sql_store import SqlReceiptStore

BUYER, CHILD, OTHER = token(1), token(2), token(3)
JANUARY, FEBRUARY, MARCH = (MonthSpan.named(f"2027-0{month}") for month in (1, 2, 3))
DAY = 86_400_000


def ms(text):
    """A time (UTC) in epoch milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def place_of(kind, folder):
    """Where the ledger of a folder is."""
    return terms_of(folder) if kind == "postgres" else folder / FILE


def closer_of(kind, folder, clock=None):
    """What closes its months."""
    ring = KeyRing(folder / RECEIPT_KEYS, clock or ManualClock(datetime.fromtimestamp(MARCH.until / 1000, UTC)))
    return MonthCloser(place_of(kind, folder), folder / "archive", ring, "data.example")


class Seller:
    """Sells from one store, at times that a test chooses."""

    def __init__(self, file, folder, clock):
        self.clock, self.ledger = clock, SqlLedger(file, clock)
        named = {"clock": clock, "issuer": Issuer("https://data.example", "data.example")}
        self.evidence = ReceiptService(SqlReceiptStore(file), folder, **named)

    def go_to(self, text):
        """Let it be that time, which is later."""
        self.clock.advance(ms(text) / 1000 - self.clock.time())

    async def sell(self, credits=2, *, who=BUYER, signed_at=None):
        """A charged call with its receipt."""
        call_id = new_call_id()
        settled = await self.ledger.charge(call_id, who, credits, endpoint="/api/pro/x")
        if signed_at is not None:
            self.go_to(signed_at)
        owner, body = token_hash(BUYER).hex(), Body("0" * 64, 5)
        sale = Sale(call_id, owner, "/api/pro/x", "GET /x", credits, credits, settled.remaining, body=body)
        await self.evidence.sign(sale)
        return call_id

    async def fail(self):
        """A call that was reserved and released, in the books of what was not charged."""
        call_id = new_call_id()
        await self.ledger.reserve(call_id, BUYER, 2, endpoint="/api/pro/y", ttl_s=60)
        settled = await self.ledger.settle(call_id, no_charge="5xx")
        owner = token_hash(BUYER).hex()
        sale = Sale(call_id, owner, "/api/pro/y", "GET /y", 2, 0, settled.remaining, reason="5xx", status=500)
        await self.evidence.sign(sale)
        return call_id

    async def close_hours(self):
        """Append what was not charged to the log, and sign it."""
        await self.evidence.log.close_hours()


@asynccontextmanager
async def opened_seller(kind, folder, at):
    """A seller on the ledger of a folder, at a time."""
    async with opened_file(kind, folder) as file:
        yield Seller(file, folder, ManualClock(datetime.fromisoformat(at).replace(tzinfo=UTC)))


async def sell_three_months(kind, folder):
    """January: bought, sold, failed, and one reserved at its end. February: settled, given back. March: one call."""
    async with opened_seller(kind, folder, "2027-01-15T08:00:00") as seller:
        await seller.ledger.mint(BUYER, 100, cause="bought")
        await seller.ledger.mint(OTHER, 10, cause="grant:1:a gift")
        terms = AllowanceTerms(name="child", credits=50)
        await seller.ledger.create_allowance(BUYER, token_hash(CHILD).hex(), terms)
        given_back = await seller.sell(5)
        for _ in range(3):
            await seller.sell()
        await seller.sell(3, who=CHILD)
        await seller.fail()
        seller.go_to("2027-01-31T23:59:59")
        await seller.ledger.reserve("at the turn", BUYER, 4, endpoint="/api/pro/x", ttl_s=60)
        seller.go_to("2027-02-01T00:00:01")
        await seller.ledger.settle("at the turn", no_charge=None)
        await seller.ledger.settle(given_back, no_charge="delivery_failed")
        await seller.fail()
        seller.go_to("2027-03-02T00:00:00")
        await seller.sell(6, who=OTHER)
        seller.go_to("2027-03-31T23:00:00")
        await seller.close_hours()
