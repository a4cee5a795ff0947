"""Top-ups and settlements over the store in memory: nothing of them needs a database."""

from datetime import UTC, datetime

import httpx
import pytest

from tests.money.x402.parts import NOW, TERMS, Script, failed, signed
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.x402 import wire
from toolserver.money.x402.facilitator import Facilitator
from toolserver.money.x402.memory_store import MemoryPaymentStore
from toolserver.money.x402.settlement import SettlementService
from toolserver.money.x402.topup import Topups

TWO = 2_000_000
KEY = "a-long-idempotency-key"


class Sales:
    """What sells top-ups, without a file."""

    def __init__(self) -> None:
        self.script, clock = Script(), ManualClock(datetime.fromtimestamp(NOW, UTC))
        self.ledger = MemoryLedger(clock)
        self.store = MemoryPaymentStore(self.ledger.books)
        self.facilitator = Facilitator("https://pay.example", transport=httpx.MockTransport(self.script))
        self.topups = Topups(SettlementService(self.store, self.facilitator, TERMS, clock), self.ledger)

    async def buy(self, payment: str):
        return await self.topups.buy(TWO, Caller("192.0.2.1", payment=payment, idempotency_key=KEY))


@pytest.fixture
async def sales():
    made = Sales()
    yield made
    await made.facilitator.aclose()


async def test_a_top_up_is_settled_credited_and_given_again(sales):
    payment = signed(TWO)
    bought = await sales.buy(payment)
    assert await sales.ledger.balance(bought.token) == 100
    assert await sales.buy(payment) == bought
    assert sales.script.settlements == 1


async def test_a_payment_that_is_refused_is_forgotten(sales):
    sales.script.settles = lambda said: failed("insufficient_funds")
    payment = signed(TWO)
    with pytest.raises(PaymentRequired):
        await sales.buy(payment)
    assert await sales.store.find_payment(wire.read_payment(payment).id) is None
