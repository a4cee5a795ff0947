"""The ledger in memory is under the contract of `test_protocol`; here is what only tests and simulations use."""

import pytest

from tests.calls.parts import START
from tests.ledger.ledgers import faults, token
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.ledger.memory import MemoryLedger

RICH = token(1)


@pytest.fixture
def ledger():
    return MemoryLedger(ManualClock(START))


async def test_a_token_is_funded_as_often_as_wanted(ledger):
    ledger.fund(RICH, 0)
    assert await ledger.knows(RICH)
    assert await ledger.balance(RICH) == 0
    for _ in range(2):
        ledger.fund(RICH, 5)
    assert await ledger.balance(RICH) == 10
    assert await faults(ledger) == []


async def test_every_reservation_stays_to_be_looked_at(ledger):
    ledger.fund(RICH, 5)
    await ledger.reserve("c1", RICH, 2, endpoint="/x", ttl_s=60)
    await ledger.settle("c1", no_charge="5xx")
    await ledger.charge("c2", RICH, 2, endpoint="/x")
    assert {call_id: hold.state for call_id, hold in ledger.held.items()} == {"c1": "voided", "c2": "posted"}
    assert await ledger.holds() == []


async def test_a_fingerprint_of_no_token_or_of_two_revokes_nothing(ledger):
    ledger.fund(RICH, 5)
    with pytest.raises(PaymentRequired):
        await ledger.revoke("0" * 16, "leaked")
    assert await ledger.balance(RICH) == 5
